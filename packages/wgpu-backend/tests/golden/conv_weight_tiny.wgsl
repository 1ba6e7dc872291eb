enable f16;
struct Params { groups: u32, row_tiles: i32, column_tiles: i32, batches: i32, tiles: i32, tiles_per_split: i32, m: i32, n: i32, k: i32, a_offset: i32, a_image: i32, a_group: i32, a_outer: i32, image_tiles: i32, b_offset: i32, b_image: i32, b_group: i32, b_row: i32, b_column: i32, positions: i32, width: i32, step_y: i32, start_y: i32, step_x: i32, start_x: i32, in_height: i32, in_width: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<f16>;
@group(0) @binding(2) var<storage, read> in1: array<f16>;
@group(0) @binding(3) var<storage, read> in2: array<vec4<i32>>;
@group(0) @binding(4) var<storage, read_write> out0: array<f32>;
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
var<workgroup> tile_a: array<vec4<f32>, 40>;
var<workgroup> tile_b: array<vec4<f32>, 40>;
@compute @workgroup_size(16)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane_index: u32) {
  let lane = i32(lane_index);
  let id = linear_group(group, groups);
  if (id >= p.groups) { return; }
  let column_first = (i32(id) % p.column_tiles) * 16;
  let above = i32(id) / p.column_tiles;
  let row_first = (above % p.row_tiles) * 16;
  let batch = above / p.row_tiles % p.batches;
  let split = above / p.row_tiles / p.batches;
  let tile_first = split * p.tiles_per_split;
  let tile_last = min(tile_first + p.tiles_per_split, p.tiles);
  let tx = lane % 4;
  let ty = lane / 4;
  let a_low = lane % 8;
  let a_high = lane / 8;
  var a0: f16;
  var a1: f16;
  var a2: f16;
  var a3: f16;
  var a4: f16;
  var a5: f16;
  var a6: f16;
  var a7: f16;
  let a_base = p.a_offset + batch * p.a_group;
  let a_row0 = a_base + min(row_first + 4 * (a_high), p.m - 1) * p.a_outer;
  let a_row1 = a_base + min(row_first + 4 * (a_high) + 1, p.m - 1) * p.a_outer;
  let a_row2 = a_base + min(row_first + 4 * (a_high) + 2, p.m - 1) * p.a_outer;
  let a_row3 = a_base + min(row_first + 4 * (a_high) + 3, p.m - 1) * p.a_outer;
  let a_row4 = a_base + min(row_first + 4 * (a_high + 2), p.m - 1) * p.a_outer;
  let a_row5 = a_base + min(row_first + 4 * (a_high + 2) + 1, p.m - 1) * p.a_outer;
  let a_row6 = a_base + min(row_first + 4 * (a_high + 2) + 2, p.m - 1) * p.a_outer;
  let a_row7 = a_base + min(row_first + 4 * (a_high + 2) + 3, p.m - 1) * p.a_outer;
  let b_low = lane % 8;
  let b_high = lane / 8;
  var b0: f16;
  var b1: f16;
  var b2: f16;
  var b3: f16;
  var b4: f16;
  var b5: f16;
  var b6: f16;
  var b7: f16;
  let e0 = in2[min(column_first + 4 * (b_high), p.n - 1)];
  let e1 = in2[min(column_first + 4 * (b_high) + 1, p.n - 1)];
  let e2 = in2[min(column_first + 4 * (b_high) + 2, p.n - 1)];
  let e3 = in2[min(column_first + 4 * (b_high) + 3, p.n - 1)];
  let e4 = in2[min(column_first + 4 * (b_high + 2), p.n - 1)];
  let e5 = in2[min(column_first + 4 * (b_high + 2) + 1, p.n - 1)];
  let e6 = in2[min(column_first + 4 * (b_high + 2) + 2, p.n - 1)];
  let e7 = in2[min(column_first + 4 * (b_high + 2) + 3, p.n - 1)];
  var c0_0 = vec4<f32>();
  var c1_0 = vec4<f32>();
  var c2_0 = vec4<f32>();
  var c3_0 = vec4<f32>();
  var t = tile_first;
  if (t < tile_last) {
      let image = t / p.image_tiles;
      let first = t % p.image_tiles * 8;
      let a_position = first + a_low;
      let a_at = image * p.a_image + a_position;
      a0 = f16();
      if (a_position < p.positions) { a0 = in0[a_row0 + a_at]; }
      a1 = f16();
      if (a_position < p.positions) { a1 = in0[a_row1 + a_at]; }
      a2 = f16();
      if (a_position < p.positions) { a2 = in0[a_row2 + a_at]; }
      a3 = f16();
      if (a_position < p.positions) { a3 = in0[a_row3 + a_at]; }
      a4 = f16();
      if (a_position < p.positions) { a4 = in0[a_row4 + a_at]; }
      a5 = f16();
      if (a_position < p.positions) { a5 = in0[a_row5 + a_at]; }
      a6 = f16();
      if (a_position < p.positions) { a6 = in0[a_row6 + a_at]; }
      a7 = f16();
      if (a_position < p.positions) { a7 = in0[a_row7 + a_at]; }
      let b_position = first + b_low;
      let b_y = b_position / p.width * p.step_y + p.start_y;
      let b_x = b_position % p.width * p.step_x + p.start_x;
      let b_base = p.b_offset + image * p.b_image + batch * p.b_group + b_y * p.b_row + b_x * p.b_column;
      let b_in = b_position < p.positions;
      b0 = f16();
      if (b_in && u32(b_y + e0.y) < u32(p.in_height) && u32(b_x + e0.z) < u32(p.in_width)) { b0 = in1[b_base + e0.x]; }
      b1 = f16();
      if (b_in && u32(b_y + e1.y) < u32(p.in_height) && u32(b_x + e1.z) < u32(p.in_width)) { b1 = in1[b_base + e1.x]; }
      b2 = f16();
      if (b_in && u32(b_y + e2.y) < u32(p.in_height) && u32(b_x + e2.z) < u32(p.in_width)) { b2 = in1[b_base + e2.x]; }
      b3 = f16();
      if (b_in && u32(b_y + e3.y) < u32(p.in_height) && u32(b_x + e3.z) < u32(p.in_width)) { b3 = in1[b_base + e3.x]; }
      b4 = f16();
      if (b_in && u32(b_y + e4.y) < u32(p.in_height) && u32(b_x + e4.z) < u32(p.in_width)) { b4 = in1[b_base + e4.x]; }
      b5 = f16();
      if (b_in && u32(b_y + e5.y) < u32(p.in_height) && u32(b_x + e5.z) < u32(p.in_width)) { b5 = in1[b_base + e5.x]; }
      b6 = f16();
      if (b_in && u32(b_y + e6.y) < u32(p.in_height) && u32(b_x + e6.z) < u32(p.in_width)) { b6 = in1[b_base + e6.x]; }
      b7 = f16();
      if (b_in && u32(b_y + e7.y) < u32(p.in_height) && u32(b_x + e7.z) < u32(p.in_width)) { b7 = in1[b_base + e7.x]; }
      tile_a[(a_low) * 5 + a_high] = vec4<f32>(f32(a0), f32(a1), f32(a2), f32(a3));
      tile_a[(a_low) * 5 + a_high + 2] = vec4<f32>(f32(a4), f32(a5), f32(a6), f32(a7));
      tile_b[(b_low) * 5 + b_high] = vec4<f32>(f32(b0), f32(b1), f32(b2), f32(b3));
      tile_b[(b_low) * 5 + b_high + 2] = vec4<f32>(f32(b4), f32(b5), f32(b6), f32(b7));
  }
  workgroupBarrier();
  for (var next = tile_first + 1; next <= tile_last; next++) {
    t = min(next, tile_last - 1);
    {
      let image = t / p.image_tiles;
      let first = t % p.image_tiles * 8;
      let a_position = first + a_low;
      let a_at = image * p.a_image + a_position;
      a0 = f16();
      if (a_position < p.positions) { a0 = in0[a_row0 + a_at]; }
      a1 = f16();
      if (a_position < p.positions) { a1 = in0[a_row1 + a_at]; }
      a2 = f16();
      if (a_position < p.positions) { a2 = in0[a_row2 + a_at]; }
      a3 = f16();
      if (a_position < p.positions) { a3 = in0[a_row3 + a_at]; }
      a4 = f16();
      if (a_position < p.positions) { a4 = in0[a_row4 + a_at]; }
      a5 = f16();
      if (a_position < p.positions) { a5 = in0[a_row5 + a_at]; }
      a6 = f16();
      if (a_position < p.positions) { a6 = in0[a_row6 + a_at]; }
      a7 = f16();
      if (a_position < p.positions) { a7 = in0[a_row7 + a_at]; }
      let b_position = first + b_low;
      let b_y = b_position / p.width * p.step_y + p.start_y;
      let b_x = b_position % p.width * p.step_x + p.start_x;
      let b_base = p.b_offset + image * p.b_image + batch * p.b_group + b_y * p.b_row + b_x * p.b_column;
      let b_in = b_position < p.positions;
      b0 = f16();
      if (b_in && u32(b_y + e0.y) < u32(p.in_height) && u32(b_x + e0.z) < u32(p.in_width)) { b0 = in1[b_base + e0.x]; }
      b1 = f16();
      if (b_in && u32(b_y + e1.y) < u32(p.in_height) && u32(b_x + e1.z) < u32(p.in_width)) { b1 = in1[b_base + e1.x]; }
      b2 = f16();
      if (b_in && u32(b_y + e2.y) < u32(p.in_height) && u32(b_x + e2.z) < u32(p.in_width)) { b2 = in1[b_base + e2.x]; }
      b3 = f16();
      if (b_in && u32(b_y + e3.y) < u32(p.in_height) && u32(b_x + e3.z) < u32(p.in_width)) { b3 = in1[b_base + e3.x]; }
      b4 = f16();
      if (b_in && u32(b_y + e4.y) < u32(p.in_height) && u32(b_x + e4.z) < u32(p.in_width)) { b4 = in1[b_base + e4.x]; }
      b5 = f16();
      if (b_in && u32(b_y + e5.y) < u32(p.in_height) && u32(b_x + e5.z) < u32(p.in_width)) { b5 = in1[b_base + e5.x]; }
      b6 = f16();
      if (b_in && u32(b_y + e6.y) < u32(p.in_height) && u32(b_x + e6.z) < u32(p.in_width)) { b6 = in1[b_base + e6.x]; }
      b7 = f16();
      if (b_in && u32(b_y + e7.y) < u32(p.in_height) && u32(b_x + e7.z) < u32(p.in_width)) { b7 = in1[b_base + e7.x]; }
    }
      let x0_0 = tile_a[0 + ty];
      let y0_0 = tile_b[0 + tx];
      c0_0 += x0_0.x * y0_0;
      c1_0 += x0_0.y * y0_0;
      c2_0 += x0_0.z * y0_0;
      c3_0 += x0_0.w * y0_0;
      let x1_0 = tile_a[5 + ty];
      let y1_0 = tile_b[5 + tx];
      c0_0 += x1_0.x * y1_0;
      c1_0 += x1_0.y * y1_0;
      c2_0 += x1_0.z * y1_0;
      c3_0 += x1_0.w * y1_0;
      let x2_0 = tile_a[10 + ty];
      let y2_0 = tile_b[10 + tx];
      c0_0 += x2_0.x * y2_0;
      c1_0 += x2_0.y * y2_0;
      c2_0 += x2_0.z * y2_0;
      c3_0 += x2_0.w * y2_0;
      let x3_0 = tile_a[15 + ty];
      let y3_0 = tile_b[15 + tx];
      c0_0 += x3_0.x * y3_0;
      c1_0 += x3_0.y * y3_0;
      c2_0 += x3_0.z * y3_0;
      c3_0 += x3_0.w * y3_0;
      let x4_0 = tile_a[20 + ty];
      let y4_0 = tile_b[20 + tx];
      c0_0 += x4_0.x * y4_0;
      c1_0 += x4_0.y * y4_0;
      c2_0 += x4_0.z * y4_0;
      c3_0 += x4_0.w * y4_0;
      let x5_0 = tile_a[25 + ty];
      let y5_0 = tile_b[25 + tx];
      c0_0 += x5_0.x * y5_0;
      c1_0 += x5_0.y * y5_0;
      c2_0 += x5_0.z * y5_0;
      c3_0 += x5_0.w * y5_0;
      let x6_0 = tile_a[30 + ty];
      let y6_0 = tile_b[30 + tx];
      c0_0 += x6_0.x * y6_0;
      c1_0 += x6_0.y * y6_0;
      c2_0 += x6_0.z * y6_0;
      c3_0 += x6_0.w * y6_0;
      let x7_0 = tile_a[35 + ty];
      let y7_0 = tile_b[35 + tx];
      c0_0 += x7_0.x * y7_0;
      c1_0 += x7_0.y * y7_0;
      c2_0 += x7_0.z * y7_0;
      c3_0 += x7_0.w * y7_0;
    workgroupBarrier();
      tile_a[(a_low) * 5 + a_high] = vec4<f32>(f32(a0), f32(a1), f32(a2), f32(a3));
      tile_a[(a_low) * 5 + a_high + 2] = vec4<f32>(f32(a4), f32(a5), f32(a6), f32(a7));
      tile_b[(b_low) * 5 + b_high] = vec4<f32>(f32(b0), f32(b1), f32(b2), f32(b3));
      tile_b[(b_low) * 5 + b_high + 2] = vec4<f32>(f32(b4), f32(b5), f32(b6), f32(b7));
    workgroupBarrier();
  }
  let out_base = (split * p.batches + batch) * p.m;
  let n0 = column_first + 0 + 4 * tx;
  let m0 = row_first + 0 + 4 * ty;
  if (m0 < p.m) {
    let row = (out_base + m0) * p.n;
    let v0 = c0_0;
    if (n0 + 0 < p.n) { out0[row + n0 + 0] = f32(v0.x); }
    if (n0 + 1 < p.n) { out0[row + n0 + 1] = f32(v0.y); }
    if (n0 + 2 < p.n) { out0[row + n0 + 2] = f32(v0.z); }
    if (n0 + 3 < p.n) { out0[row + n0 + 3] = f32(v0.w); }
  }
  let m1 = row_first + 1 + 4 * ty;
  if (m1 < p.m) {
    let row = (out_base + m1) * p.n;
    let v0 = c1_0;
    if (n0 + 0 < p.n) { out0[row + n0 + 0] = f32(v0.x); }
    if (n0 + 1 < p.n) { out0[row + n0 + 1] = f32(v0.y); }
    if (n0 + 2 < p.n) { out0[row + n0 + 2] = f32(v0.z); }
    if (n0 + 3 < p.n) { out0[row + n0 + 3] = f32(v0.w); }
  }
  let m2 = row_first + 2 + 4 * ty;
  if (m2 < p.m) {
    let row = (out_base + m2) * p.n;
    let v0 = c2_0;
    if (n0 + 0 < p.n) { out0[row + n0 + 0] = f32(v0.x); }
    if (n0 + 1 < p.n) { out0[row + n0 + 1] = f32(v0.y); }
    if (n0 + 2 < p.n) { out0[row + n0 + 2] = f32(v0.z); }
    if (n0 + 3 < p.n) { out0[row + n0 + 3] = f32(v0.w); }
  }
  let m3 = row_first + 3 + 4 * ty;
  if (m3 < p.m) {
    let row = (out_base + m3) * p.n;
    let v0 = c3_0;
    if (n0 + 0 < p.n) { out0[row + n0 + 0] = f32(v0.x); }
    if (n0 + 1 < p.n) { out0[row + n0 + 1] = f32(v0.y); }
    if (n0 + 2 < p.n) { out0[row + n0 + 2] = f32(v0.z); }
    if (n0 + 3 < p.n) { out0[row + n0 + 3] = f32(v0.w); }
  }
}

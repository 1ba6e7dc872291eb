struct Params { groups: u32, row_tiles: i32, column_tiles: i32, batches: i32, tiles: i32, tiles_per_split: i32, m: i32, n: i32, k: i32, a_offset: i32, a_batch: i32, a_outer: i32, a_depth: i32, b_offset: i32, b_image: i32, b_group: i32, b_row: i32, b_column: i32, positions: i32, width: i32, step_y: i32, start_y: i32, step_x: i32, start_x: i32, in_height: i32, in_width: i32, out_offset: i32, out_image: i32, out_group: i32, out_channel: i32, out_row: i32, out_column: i32, out_split: i32, bias_offset: i32, bias_stride: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<f32>;
@group(0) @binding(2) var<storage, read> in1: array<f32>;
@group(0) @binding(3) var<storage, read> in2: array<vec4<i32>>;
@group(0) @binding(4) var<storage, read> in3: array<f32>;
@group(0) @binding(5) var<storage, read_write> out0: array<vec4<f32>>;
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
var<workgroup> tile_a: array<vec4<f32>, 40>;
var<workgroup> tile_b: array<vec4<f32>, 32>;
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
  let a_base = p.a_offset + batch * p.a_batch;
  let a_low = lane % 8;
  let a_high = lane / 8;
  var a0: f32;
  var a1: f32;
  var a2: f32;
  var a3: f32;
  var a4: f32;
  var a5: f32;
  var a6: f32;
  var a7: f32;
  var a_at0 = a_base + min(row_first + 4 * (a_high), p.m - 1) * p.a_outer + (tile_first * 8 + a_low) * p.a_depth;
  var a_at1 = a_base + min(row_first + 4 * (a_high) + 1, p.m - 1) * p.a_outer + (tile_first * 8 + a_low) * p.a_depth;
  var a_at2 = a_base + min(row_first + 4 * (a_high) + 2, p.m - 1) * p.a_outer + (tile_first * 8 + a_low) * p.a_depth;
  var a_at3 = a_base + min(row_first + 4 * (a_high) + 3, p.m - 1) * p.a_outer + (tile_first * 8 + a_low) * p.a_depth;
  var a_at4 = a_base + min(row_first + 4 * (a_high + 2), p.m - 1) * p.a_outer + (tile_first * 8 + a_low) * p.a_depth;
  var a_at5 = a_base + min(row_first + 4 * (a_high + 2) + 1, p.m - 1) * p.a_outer + (tile_first * 8 + a_low) * p.a_depth;
  var a_at6 = a_base + min(row_first + 4 * (a_high + 2) + 2, p.m - 1) * p.a_outer + (tile_first * 8 + a_low) * p.a_depth;
  var a_at7 = a_base + min(row_first + 4 * (a_high + 2) + 3, p.m - 1) * p.a_outer + (tile_first * 8 + a_low) * p.a_depth;
  let b_low = lane % 4;
  let b_high = lane / 4;
  var b0: f32;
  var b1: f32;
  var b2: f32;
  var b3: f32;
  var b4: f32;
  var b5: f32;
  var b6: f32;
  var b7: f32;
  let b0_n = min(column_first + 4 * (b_low), p.n - 1);
  let b0_y = (b0_n % p.positions) / p.width * p.step_y + p.start_y;
  let b0_x = (b0_n % p.positions) % p.width * p.step_x + p.start_x;
  let b0_base = p.b_offset + b0_n / p.positions * p.b_image + batch * p.b_group + b0_y * p.b_row + b0_x * p.b_column;
  let b1_n = min(column_first + 4 * (b_low) + 1, p.n - 1);
  let b1_y = (b1_n % p.positions) / p.width * p.step_y + p.start_y;
  let b1_x = (b1_n % p.positions) % p.width * p.step_x + p.start_x;
  let b1_base = p.b_offset + b1_n / p.positions * p.b_image + batch * p.b_group + b1_y * p.b_row + b1_x * p.b_column;
  let b2_n = min(column_first + 4 * (b_low) + 2, p.n - 1);
  let b2_y = (b2_n % p.positions) / p.width * p.step_y + p.start_y;
  let b2_x = (b2_n % p.positions) % p.width * p.step_x + p.start_x;
  let b2_base = p.b_offset + b2_n / p.positions * p.b_image + batch * p.b_group + b2_y * p.b_row + b2_x * p.b_column;
  let b3_n = min(column_first + 4 * (b_low) + 3, p.n - 1);
  let b3_y = (b3_n % p.positions) / p.width * p.step_y + p.start_y;
  let b3_x = (b3_n % p.positions) % p.width * p.step_x + p.start_x;
  let b3_base = p.b_offset + b3_n / p.positions * p.b_image + batch * p.b_group + b3_y * p.b_row + b3_x * p.b_column;
  var c0_0 = vec4<f32>();
  var c1_0 = vec4<f32>();
  var c2_0 = vec4<f32>();
  var c3_0 = vec4<f32>();
  var t = tile_first;
  if (t < tile_last) {
      if ((t + 1) * 8 <= p.k) {
        a0 = in0[a_at0];
        a1 = in0[a_at1];
        a2 = in0[a_at2];
        a3 = in0[a_at3];
        a4 = in0[a_at4];
        a5 = in0[a_at5];
        a6 = in0[a_at6];
        a7 = in0[a_at7];
      } else {
        a0 = f32();
        if (t * 8 + a_low < p.k) { a0 = in0[a_at0]; }
        a1 = f32();
        if (t * 8 + a_low < p.k) { a1 = in0[a_at1]; }
        a2 = f32();
        if (t * 8 + a_low < p.k) { a2 = in0[a_at2]; }
        a3 = f32();
        if (t * 8 + a_low < p.k) { a3 = in0[a_at3]; }
        a4 = f32();
        if (t * 8 + a_low < p.k) { a4 = in0[a_at4]; }
        a5 = f32();
        if (t * 8 + a_low < p.k) { a5 = in0[a_at5]; }
        a6 = f32();
        if (t * 8 + a_low < p.k) { a6 = in0[a_at6]; }
        a7 = f32();
        if (t * 8 + a_low < p.k) { a7 = in0[a_at7]; }
      }
      a_at0 += 8 * p.a_depth;
      a_at1 += 8 * p.a_depth;
      a_at2 += 8 * p.a_depth;
      a_at3 += 8 * p.a_depth;
      a_at4 += 8 * p.a_depth;
      a_at5 += 8 * p.a_depth;
      a_at6 += 8 * p.a_depth;
      a_at7 += 8 * p.a_depth;
      let e0 = in2[t * 8 + b_high];
      b0 = f32();
      if (u32(b0_y + e0.y) < u32(p.in_height) && u32(b0_x + e0.z) < u32(p.in_width)) { b0 = in1[b0_base + e0.x]; }
      b1 = f32();
      if (u32(b1_y + e0.y) < u32(p.in_height) && u32(b1_x + e0.z) < u32(p.in_width)) { b1 = in1[b1_base + e0.x]; }
      b2 = f32();
      if (u32(b2_y + e0.y) < u32(p.in_height) && u32(b2_x + e0.z) < u32(p.in_width)) { b2 = in1[b2_base + e0.x]; }
      b3 = f32();
      if (u32(b3_y + e0.y) < u32(p.in_height) && u32(b3_x + e0.z) < u32(p.in_width)) { b3 = in1[b3_base + e0.x]; }
      let e1 = in2[t * 8 + b_high + 4];
      b4 = f32();
      if (u32(b0_y + e1.y) < u32(p.in_height) && u32(b0_x + e1.z) < u32(p.in_width)) { b4 = in1[b0_base + e1.x]; }
      b5 = f32();
      if (u32(b1_y + e1.y) < u32(p.in_height) && u32(b1_x + e1.z) < u32(p.in_width)) { b5 = in1[b1_base + e1.x]; }
      b6 = f32();
      if (u32(b2_y + e1.y) < u32(p.in_height) && u32(b2_x + e1.z) < u32(p.in_width)) { b6 = in1[b2_base + e1.x]; }
      b7 = f32();
      if (u32(b3_y + e1.y) < u32(p.in_height) && u32(b3_x + e1.z) < u32(p.in_width)) { b7 = in1[b3_base + e1.x]; }
      tile_a[(a_low) * 5 + a_high] = vec4<f32>(f32(a0), f32(a1), f32(a2), f32(a3));
      tile_a[(a_low) * 5 + a_high + 2] = vec4<f32>(f32(a4), f32(a5), f32(a6), f32(a7));
      tile_b[(b_high) * 4 + b_low] = vec4<f32>(f32(b0), f32(b1), f32(b2), f32(b3));
      tile_b[(b_high + 4) * 4 + b_low] = vec4<f32>(f32(b4), f32(b5), f32(b6), f32(b7));
  }
  workgroupBarrier();
  for (var next = tile_first + 1; next <= tile_last; next++) {
    t = min(next, tile_last - 1);
    {
      if ((t + 1) * 8 <= p.k) {
        a0 = in0[a_at0];
        a1 = in0[a_at1];
        a2 = in0[a_at2];
        a3 = in0[a_at3];
        a4 = in0[a_at4];
        a5 = in0[a_at5];
        a6 = in0[a_at6];
        a7 = in0[a_at7];
      } else {
        a0 = f32();
        if (t * 8 + a_low < p.k) { a0 = in0[a_at0]; }
        a1 = f32();
        if (t * 8 + a_low < p.k) { a1 = in0[a_at1]; }
        a2 = f32();
        if (t * 8 + a_low < p.k) { a2 = in0[a_at2]; }
        a3 = f32();
        if (t * 8 + a_low < p.k) { a3 = in0[a_at3]; }
        a4 = f32();
        if (t * 8 + a_low < p.k) { a4 = in0[a_at4]; }
        a5 = f32();
        if (t * 8 + a_low < p.k) { a5 = in0[a_at5]; }
        a6 = f32();
        if (t * 8 + a_low < p.k) { a6 = in0[a_at6]; }
        a7 = f32();
        if (t * 8 + a_low < p.k) { a7 = in0[a_at7]; }
      }
      a_at0 += 8 * p.a_depth;
      a_at1 += 8 * p.a_depth;
      a_at2 += 8 * p.a_depth;
      a_at3 += 8 * p.a_depth;
      a_at4 += 8 * p.a_depth;
      a_at5 += 8 * p.a_depth;
      a_at6 += 8 * p.a_depth;
      a_at7 += 8 * p.a_depth;
      let e0 = in2[t * 8 + b_high];
      b0 = f32();
      if (u32(b0_y + e0.y) < u32(p.in_height) && u32(b0_x + e0.z) < u32(p.in_width)) { b0 = in1[b0_base + e0.x]; }
      b1 = f32();
      if (u32(b1_y + e0.y) < u32(p.in_height) && u32(b1_x + e0.z) < u32(p.in_width)) { b1 = in1[b1_base + e0.x]; }
      b2 = f32();
      if (u32(b2_y + e0.y) < u32(p.in_height) && u32(b2_x + e0.z) < u32(p.in_width)) { b2 = in1[b2_base + e0.x]; }
      b3 = f32();
      if (u32(b3_y + e0.y) < u32(p.in_height) && u32(b3_x + e0.z) < u32(p.in_width)) { b3 = in1[b3_base + e0.x]; }
      let e1 = in2[t * 8 + b_high + 4];
      b4 = f32();
      if (u32(b0_y + e1.y) < u32(p.in_height) && u32(b0_x + e1.z) < u32(p.in_width)) { b4 = in1[b0_base + e1.x]; }
      b5 = f32();
      if (u32(b1_y + e1.y) < u32(p.in_height) && u32(b1_x + e1.z) < u32(p.in_width)) { b5 = in1[b1_base + e1.x]; }
      b6 = f32();
      if (u32(b2_y + e1.y) < u32(p.in_height) && u32(b2_x + e1.z) < u32(p.in_width)) { b6 = in1[b2_base + e1.x]; }
      b7 = f32();
      if (u32(b3_y + e1.y) < u32(p.in_height) && u32(b3_x + e1.z) < u32(p.in_width)) { b7 = in1[b3_base + e1.x]; }
    }
      let x0_0 = tile_a[0 + ty];
      let y0_0 = tile_b[0 + tx];
      c0_0 += x0_0.x * y0_0;
      c1_0 += x0_0.y * y0_0;
      c2_0 += x0_0.z * y0_0;
      c3_0 += x0_0.w * y0_0;
      let x1_0 = tile_a[5 + ty];
      let y1_0 = tile_b[4 + tx];
      c0_0 += x1_0.x * y1_0;
      c1_0 += x1_0.y * y1_0;
      c2_0 += x1_0.z * y1_0;
      c3_0 += x1_0.w * y1_0;
      let x2_0 = tile_a[10 + ty];
      let y2_0 = tile_b[8 + tx];
      c0_0 += x2_0.x * y2_0;
      c1_0 += x2_0.y * y2_0;
      c2_0 += x2_0.z * y2_0;
      c3_0 += x2_0.w * y2_0;
      let x3_0 = tile_a[15 + ty];
      let y3_0 = tile_b[12 + tx];
      c0_0 += x3_0.x * y3_0;
      c1_0 += x3_0.y * y3_0;
      c2_0 += x3_0.z * y3_0;
      c3_0 += x3_0.w * y3_0;
      let x4_0 = tile_a[20 + ty];
      let y4_0 = tile_b[16 + tx];
      c0_0 += x4_0.x * y4_0;
      c1_0 += x4_0.y * y4_0;
      c2_0 += x4_0.z * y4_0;
      c3_0 += x4_0.w * y4_0;
      let x5_0 = tile_a[25 + ty];
      let y5_0 = tile_b[20 + tx];
      c0_0 += x5_0.x * y5_0;
      c1_0 += x5_0.y * y5_0;
      c2_0 += x5_0.z * y5_0;
      c3_0 += x5_0.w * y5_0;
      let x6_0 = tile_a[30 + ty];
      let y6_0 = tile_b[24 + tx];
      c0_0 += x6_0.x * y6_0;
      c1_0 += x6_0.y * y6_0;
      c2_0 += x6_0.z * y6_0;
      c3_0 += x6_0.w * y6_0;
      let x7_0 = tile_a[35 + ty];
      let y7_0 = tile_b[28 + tx];
      c0_0 += x7_0.x * y7_0;
      c1_0 += x7_0.y * y7_0;
      c2_0 += x7_0.z * y7_0;
      c3_0 += x7_0.w * y7_0;
    workgroupBarrier();
      tile_a[(a_low) * 5 + a_high] = vec4<f32>(f32(a0), f32(a1), f32(a2), f32(a3));
      tile_a[(a_low) * 5 + a_high + 2] = vec4<f32>(f32(a4), f32(a5), f32(a6), f32(a7));
      tile_b[(b_high) * 4 + b_low] = vec4<f32>(f32(b0), f32(b1), f32(b2), f32(b3));
      tile_b[(b_high + 4) * 4 + b_low] = vec4<f32>(f32(b4), f32(b5), f32(b6), f32(b7));
    workgroupBarrier();
  }
  let out_base = p.out_offset + split * p.out_split + batch * p.out_group;
  let n0_0 = column_first + 0 + 4 * tx + 0;
  let at0_0 = n0_0 / p.positions * p.out_image + (n0_0) % p.positions;
  let m0 = row_first + 0 + 4 * ty;
  if (m0 < p.m) {
    let row = out_base + m0 * p.out_channel;
    let bias = f32(in3[p.bias_offset + (batch * p.m + m0) * p.bias_stride]);
    let v0 = c0_0 + bias;
    if (n0_0 < p.n) { out0[(row + at0_0) / 4] = vec4<f32>(v0); }
  }
  let m1 = row_first + 1 + 4 * ty;
  if (m1 < p.m) {
    let row = out_base + m1 * p.out_channel;
    let bias = f32(in3[p.bias_offset + (batch * p.m + m1) * p.bias_stride]);
    let v0 = c1_0 + bias;
    if (n0_0 < p.n) { out0[(row + at0_0) / 4] = vec4<f32>(v0); }
  }
  let m2 = row_first + 2 + 4 * ty;
  if (m2 < p.m) {
    let row = out_base + m2 * p.out_channel;
    let bias = f32(in3[p.bias_offset + (batch * p.m + m2) * p.bias_stride]);
    let v0 = c2_0 + bias;
    if (n0_0 < p.n) { out0[(row + at0_0) / 4] = vec4<f32>(v0); }
  }
  let m3 = row_first + 3 + 4 * ty;
  if (m3 < p.m) {
    let row = out_base + m3 * p.out_channel;
    let bias = f32(in3[p.bias_offset + (batch * p.m + m3) * p.bias_stride]);
    let v0 = c3_0 + bias;
    if (n0_0 < p.n) { out0[(row + at0_0) / 4] = vec4<f32>(v0); }
  }
}

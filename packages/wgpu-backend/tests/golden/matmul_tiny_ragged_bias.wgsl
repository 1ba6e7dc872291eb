enable f16;
struct Params { groups: u32, row_tiles: i32, column_tiles: i32, batches: i32, tiles: i32, tiles_per_split: i32, m: i32, n: i32, k: i32, inner: i32, a_offset: i32, a_batch1: i32, a_batch0: i32, a_outer: i32, a_depth: i32, b_offset: i32, b_batch1: i32, b_batch0: i32, b_outer: i32, b_depth: i32, bias_offset: i32, bias_stride: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<f16>;
@group(0) @binding(2) var<storage, read> in1: array<f16>;
@group(0) @binding(3) var<storage, read> in2: array<f16>;
@group(0) @binding(4) var<storage, read_write> out0: array<f16>;
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
var<workgroup> tile_a: array<vec4<f32>, 32>;
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
  let a_base = p.a_offset + batch / p.inner * p.a_batch1 + batch % p.inner * p.a_batch0;
  let b_base = p.b_offset + batch / p.inner * p.b_batch1 + batch % p.inner * p.b_batch0;
  let a_low = lane % 4;
  let a_high = lane / 4;
  var a0: f16;
  var a1: f16;
  var a2: f16;
  var a3: f16;
  var a4: f16;
  var a5: f16;
  var a6: f16;
  var a7: f16;
  var a_at0 = a_base + min(row_first + 4 * (a_low), p.m - 1) * p.a_outer + (tile_first * 8 + a_high) * p.a_depth;
  var a_at1 = a_base + min(row_first + 4 * (a_low) + 1, p.m - 1) * p.a_outer + (tile_first * 8 + a_high) * p.a_depth;
  var a_at2 = a_base + min(row_first + 4 * (a_low) + 2, p.m - 1) * p.a_outer + (tile_first * 8 + a_high) * p.a_depth;
  var a_at3 = a_base + min(row_first + 4 * (a_low) + 3, p.m - 1) * p.a_outer + (tile_first * 8 + a_high) * p.a_depth;
  var a_at4 = a_base + min(row_first + 4 * (a_low), p.m - 1) * p.a_outer + (tile_first * 8 + a_high + 4) * p.a_depth;
  var a_at5 = a_base + min(row_first + 4 * (a_low) + 1, p.m - 1) * p.a_outer + (tile_first * 8 + a_high + 4) * p.a_depth;
  var a_at6 = a_base + min(row_first + 4 * (a_low) + 2, p.m - 1) * p.a_outer + (tile_first * 8 + a_high + 4) * p.a_depth;
  var a_at7 = a_base + min(row_first + 4 * (a_low) + 3, p.m - 1) * p.a_outer + (tile_first * 8 + a_high + 4) * p.a_depth;
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
  var b_at0 = b_base + min(column_first + 4 * (b_high), p.n - 1) * p.b_outer + (tile_first * 8 + b_low) * p.b_depth;
  var b_at1 = b_base + min(column_first + 4 * (b_high) + 1, p.n - 1) * p.b_outer + (tile_first * 8 + b_low) * p.b_depth;
  var b_at2 = b_base + min(column_first + 4 * (b_high) + 2, p.n - 1) * p.b_outer + (tile_first * 8 + b_low) * p.b_depth;
  var b_at3 = b_base + min(column_first + 4 * (b_high) + 3, p.n - 1) * p.b_outer + (tile_first * 8 + b_low) * p.b_depth;
  var b_at4 = b_base + min(column_first + 4 * (b_high + 2), p.n - 1) * p.b_outer + (tile_first * 8 + b_low) * p.b_depth;
  var b_at5 = b_base + min(column_first + 4 * (b_high + 2) + 1, p.n - 1) * p.b_outer + (tile_first * 8 + b_low) * p.b_depth;
  var b_at6 = b_base + min(column_first + 4 * (b_high + 2) + 2, p.n - 1) * p.b_outer + (tile_first * 8 + b_low) * p.b_depth;
  var b_at7 = b_base + min(column_first + 4 * (b_high + 2) + 3, p.n - 1) * p.b_outer + (tile_first * 8 + b_low) * p.b_depth;
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
        a0 = f16();
        if (t * 8 + a_high < p.k) { a0 = in0[a_at0]; }
        a1 = f16();
        if (t * 8 + a_high < p.k) { a1 = in0[a_at1]; }
        a2 = f16();
        if (t * 8 + a_high < p.k) { a2 = in0[a_at2]; }
        a3 = f16();
        if (t * 8 + a_high < p.k) { a3 = in0[a_at3]; }
        a4 = f16();
        if (t * 8 + a_high + 4 < p.k) { a4 = in0[a_at4]; }
        a5 = f16();
        if (t * 8 + a_high + 4 < p.k) { a5 = in0[a_at5]; }
        a6 = f16();
        if (t * 8 + a_high + 4 < p.k) { a6 = in0[a_at6]; }
        a7 = f16();
        if (t * 8 + a_high + 4 < p.k) { a7 = in0[a_at7]; }
      }
      a_at0 += 8 * p.a_depth;
      a_at1 += 8 * p.a_depth;
      a_at2 += 8 * p.a_depth;
      a_at3 += 8 * p.a_depth;
      a_at4 += 8 * p.a_depth;
      a_at5 += 8 * p.a_depth;
      a_at6 += 8 * p.a_depth;
      a_at7 += 8 * p.a_depth;
      if ((t + 1) * 8 <= p.k) {
        b0 = in1[b_at0];
        b1 = in1[b_at1];
        b2 = in1[b_at2];
        b3 = in1[b_at3];
        b4 = in1[b_at4];
        b5 = in1[b_at5];
        b6 = in1[b_at6];
        b7 = in1[b_at7];
      } else {
        b0 = f16();
        if (t * 8 + b_low < p.k) { b0 = in1[b_at0]; }
        b1 = f16();
        if (t * 8 + b_low < p.k) { b1 = in1[b_at1]; }
        b2 = f16();
        if (t * 8 + b_low < p.k) { b2 = in1[b_at2]; }
        b3 = f16();
        if (t * 8 + b_low < p.k) { b3 = in1[b_at3]; }
        b4 = f16();
        if (t * 8 + b_low < p.k) { b4 = in1[b_at4]; }
        b5 = f16();
        if (t * 8 + b_low < p.k) { b5 = in1[b_at5]; }
        b6 = f16();
        if (t * 8 + b_low < p.k) { b6 = in1[b_at6]; }
        b7 = f16();
        if (t * 8 + b_low < p.k) { b7 = in1[b_at7]; }
      }
      b_at0 += 8 * p.b_depth;
      b_at1 += 8 * p.b_depth;
      b_at2 += 8 * p.b_depth;
      b_at3 += 8 * p.b_depth;
      b_at4 += 8 * p.b_depth;
      b_at5 += 8 * p.b_depth;
      b_at6 += 8 * p.b_depth;
      b_at7 += 8 * p.b_depth;
      tile_a[(a_high) * 4 + a_low] = vec4<f32>(f32(a0), f32(a1), f32(a2), f32(a3));
      tile_a[(a_high + 4) * 4 + a_low] = vec4<f32>(f32(a4), f32(a5), f32(a6), f32(a7));
      tile_b[(b_low) * 5 + b_high] = vec4<f32>(f32(b0), f32(b1), f32(b2), f32(b3));
      tile_b[(b_low) * 5 + b_high + 2] = vec4<f32>(f32(b4), f32(b5), f32(b6), f32(b7));
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
        a0 = f16();
        if (t * 8 + a_high < p.k) { a0 = in0[a_at0]; }
        a1 = f16();
        if (t * 8 + a_high < p.k) { a1 = in0[a_at1]; }
        a2 = f16();
        if (t * 8 + a_high < p.k) { a2 = in0[a_at2]; }
        a3 = f16();
        if (t * 8 + a_high < p.k) { a3 = in0[a_at3]; }
        a4 = f16();
        if (t * 8 + a_high + 4 < p.k) { a4 = in0[a_at4]; }
        a5 = f16();
        if (t * 8 + a_high + 4 < p.k) { a5 = in0[a_at5]; }
        a6 = f16();
        if (t * 8 + a_high + 4 < p.k) { a6 = in0[a_at6]; }
        a7 = f16();
        if (t * 8 + a_high + 4 < p.k) { a7 = in0[a_at7]; }
      }
      a_at0 += 8 * p.a_depth;
      a_at1 += 8 * p.a_depth;
      a_at2 += 8 * p.a_depth;
      a_at3 += 8 * p.a_depth;
      a_at4 += 8 * p.a_depth;
      a_at5 += 8 * p.a_depth;
      a_at6 += 8 * p.a_depth;
      a_at7 += 8 * p.a_depth;
      if ((t + 1) * 8 <= p.k) {
        b0 = in1[b_at0];
        b1 = in1[b_at1];
        b2 = in1[b_at2];
        b3 = in1[b_at3];
        b4 = in1[b_at4];
        b5 = in1[b_at5];
        b6 = in1[b_at6];
        b7 = in1[b_at7];
      } else {
        b0 = f16();
        if (t * 8 + b_low < p.k) { b0 = in1[b_at0]; }
        b1 = f16();
        if (t * 8 + b_low < p.k) { b1 = in1[b_at1]; }
        b2 = f16();
        if (t * 8 + b_low < p.k) { b2 = in1[b_at2]; }
        b3 = f16();
        if (t * 8 + b_low < p.k) { b3 = in1[b_at3]; }
        b4 = f16();
        if (t * 8 + b_low < p.k) { b4 = in1[b_at4]; }
        b5 = f16();
        if (t * 8 + b_low < p.k) { b5 = in1[b_at5]; }
        b6 = f16();
        if (t * 8 + b_low < p.k) { b6 = in1[b_at6]; }
        b7 = f16();
        if (t * 8 + b_low < p.k) { b7 = in1[b_at7]; }
      }
      b_at0 += 8 * p.b_depth;
      b_at1 += 8 * p.b_depth;
      b_at2 += 8 * p.b_depth;
      b_at3 += 8 * p.b_depth;
      b_at4 += 8 * p.b_depth;
      b_at5 += 8 * p.b_depth;
      b_at6 += 8 * p.b_depth;
      b_at7 += 8 * p.b_depth;
    }
      let x0_0 = tile_a[0 + ty];
      let y0_0 = tile_b[0 + tx];
      c0_0 += x0_0.x * y0_0;
      c1_0 += x0_0.y * y0_0;
      c2_0 += x0_0.z * y0_0;
      c3_0 += x0_0.w * y0_0;
      let x1_0 = tile_a[4 + ty];
      let y1_0 = tile_b[5 + tx];
      c0_0 += x1_0.x * y1_0;
      c1_0 += x1_0.y * y1_0;
      c2_0 += x1_0.z * y1_0;
      c3_0 += x1_0.w * y1_0;
      let x2_0 = tile_a[8 + ty];
      let y2_0 = tile_b[10 + tx];
      c0_0 += x2_0.x * y2_0;
      c1_0 += x2_0.y * y2_0;
      c2_0 += x2_0.z * y2_0;
      c3_0 += x2_0.w * y2_0;
      let x3_0 = tile_a[12 + ty];
      let y3_0 = tile_b[15 + tx];
      c0_0 += x3_0.x * y3_0;
      c1_0 += x3_0.y * y3_0;
      c2_0 += x3_0.z * y3_0;
      c3_0 += x3_0.w * y3_0;
      let x4_0 = tile_a[16 + ty];
      let y4_0 = tile_b[20 + tx];
      c0_0 += x4_0.x * y4_0;
      c1_0 += x4_0.y * y4_0;
      c2_0 += x4_0.z * y4_0;
      c3_0 += x4_0.w * y4_0;
      let x5_0 = tile_a[20 + ty];
      let y5_0 = tile_b[25 + tx];
      c0_0 += x5_0.x * y5_0;
      c1_0 += x5_0.y * y5_0;
      c2_0 += x5_0.z * y5_0;
      c3_0 += x5_0.w * y5_0;
      let x6_0 = tile_a[24 + ty];
      let y6_0 = tile_b[30 + tx];
      c0_0 += x6_0.x * y6_0;
      c1_0 += x6_0.y * y6_0;
      c2_0 += x6_0.z * y6_0;
      c3_0 += x6_0.w * y6_0;
      let x7_0 = tile_a[28 + ty];
      let y7_0 = tile_b[35 + tx];
      c0_0 += x7_0.x * y7_0;
      c1_0 += x7_0.y * y7_0;
      c2_0 += x7_0.z * y7_0;
      c3_0 += x7_0.w * y7_0;
    workgroupBarrier();
      tile_a[(a_high) * 4 + a_low] = vec4<f32>(f32(a0), f32(a1), f32(a2), f32(a3));
      tile_a[(a_high + 4) * 4 + a_low] = vec4<f32>(f32(a4), f32(a5), f32(a6), f32(a7));
      tile_b[(b_low) * 5 + b_high] = vec4<f32>(f32(b0), f32(b1), f32(b2), f32(b3));
      tile_b[(b_low) * 5 + b_high + 2] = vec4<f32>(f32(b4), f32(b5), f32(b6), f32(b7));
    workgroupBarrier();
  }
  let out_base = (split * p.batches + batch) * p.m;
  let n0 = column_first + 0 + 4 * tx;
  let bias0 = vec4<f32>(f32(in2[p.bias_offset + min(n0 + 0, p.n - 1) * p.bias_stride]), f32(in2[p.bias_offset + min(n0 + 1, p.n - 1) * p.bias_stride]), f32(in2[p.bias_offset + min(n0 + 2, p.n - 1) * p.bias_stride]), f32(in2[p.bias_offset + min(n0 + 3, p.n - 1) * p.bias_stride]));
  let m0 = row_first + 0 + 4 * ty;
  if (m0 < p.m) {
    let row = (out_base + m0) * p.n;
    let v0 = c0_0 + bias0;
    if (n0 + 0 < p.n) { out0[row + n0 + 0] = f16(v0.x); }
    if (n0 + 1 < p.n) { out0[row + n0 + 1] = f16(v0.y); }
    if (n0 + 2 < p.n) { out0[row + n0 + 2] = f16(v0.z); }
    if (n0 + 3 < p.n) { out0[row + n0 + 3] = f16(v0.w); }
  }
  let m1 = row_first + 1 + 4 * ty;
  if (m1 < p.m) {
    let row = (out_base + m1) * p.n;
    let v0 = c1_0 + bias0;
    if (n0 + 0 < p.n) { out0[row + n0 + 0] = f16(v0.x); }
    if (n0 + 1 < p.n) { out0[row + n0 + 1] = f16(v0.y); }
    if (n0 + 2 < p.n) { out0[row + n0 + 2] = f16(v0.z); }
    if (n0 + 3 < p.n) { out0[row + n0 + 3] = f16(v0.w); }
  }
  let m2 = row_first + 2 + 4 * ty;
  if (m2 < p.m) {
    let row = (out_base + m2) * p.n;
    let v0 = c2_0 + bias0;
    if (n0 + 0 < p.n) { out0[row + n0 + 0] = f16(v0.x); }
    if (n0 + 1 < p.n) { out0[row + n0 + 1] = f16(v0.y); }
    if (n0 + 2 < p.n) { out0[row + n0 + 2] = f16(v0.z); }
    if (n0 + 3 < p.n) { out0[row + n0 + 3] = f16(v0.w); }
  }
  let m3 = row_first + 3 + 4 * ty;
  if (m3 < p.m) {
    let row = (out_base + m3) * p.n;
    let v0 = c3_0 + bias0;
    if (n0 + 0 < p.n) { out0[row + n0 + 0] = f16(v0.x); }
    if (n0 + 1 < p.n) { out0[row + n0 + 1] = f16(v0.y); }
    if (n0 + 2 < p.n) { out0[row + n0 + 2] = f16(v0.z); }
    if (n0 + 3 < p.n) { out0[row + n0 + 3] = f16(v0.w); }
  }
}

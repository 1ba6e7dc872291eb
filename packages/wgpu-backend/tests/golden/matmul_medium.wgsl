struct Params { groups: u32, row_tiles: i32, column_tiles: i32, batches: i32, tiles: i32, tiles_per_split: i32, m: i32, n: i32, k: i32, inner: i32, a_offset: i32, a_batch1: i32, a_batch0: i32, a_outer: i32, a_depth: i32, b_offset: i32, b_batch1: i32, b_batch0: i32, b_outer: i32, b_depth: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<f32>;
@group(0) @binding(2) var<storage, read> in1: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out0: array<vec4<f32>>;
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
var<workgroup> tile_a: array<vec4<f32>, 272>;
var<workgroup> tile_b: array<vec4<f32>, 256>;
@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane_index: u32) {
  let lane = i32(lane_index);
  let id = linear_group(group, groups);
  if (id >= p.groups) { return; }
  let column_first = (i32(id) % p.column_tiles) * 64;
  let above = i32(id) / p.column_tiles;
  let row_first = (above % p.row_tiles) * 64;
  let batch = above / p.row_tiles % p.batches;
  let split = above / p.row_tiles / p.batches;
  let tile_first = split * p.tiles_per_split;
  let tile_last = min(tile_first + p.tiles_per_split, p.tiles);
  let tx = lane % 16;
  let ty = lane / 16;
  let a_base = p.a_offset + batch / p.inner * p.a_batch1 + batch % p.inner * p.a_batch0;
  let b_base = p.b_offset + batch / p.inner * p.b_batch1 + batch % p.inner * p.b_batch0;
  let a_low = lane % 16;
  let a_high = lane / 16;
  var a0: f32;
  var a1: f32;
  var a2: f32;
  var a3: f32;
  var a4: f32;
  var a5: f32;
  var a6: f32;
  var a7: f32;
  var a_at0 = a_base + min(row_first + 4 * (a_high), p.m - 1) * p.a_outer + (tile_first * 16 + a_low) * p.a_depth;
  var a_at1 = a_base + min(row_first + 4 * (a_high) + 1, p.m - 1) * p.a_outer + (tile_first * 16 + a_low) * p.a_depth;
  var a_at2 = a_base + min(row_first + 4 * (a_high) + 2, p.m - 1) * p.a_outer + (tile_first * 16 + a_low) * p.a_depth;
  var a_at3 = a_base + min(row_first + 4 * (a_high) + 3, p.m - 1) * p.a_outer + (tile_first * 16 + a_low) * p.a_depth;
  var a_at4 = a_base + min(row_first + 4 * (a_high + 8), p.m - 1) * p.a_outer + (tile_first * 16 + a_low) * p.a_depth;
  var a_at5 = a_base + min(row_first + 4 * (a_high + 8) + 1, p.m - 1) * p.a_outer + (tile_first * 16 + a_low) * p.a_depth;
  var a_at6 = a_base + min(row_first + 4 * (a_high + 8) + 2, p.m - 1) * p.a_outer + (tile_first * 16 + a_low) * p.a_depth;
  var a_at7 = a_base + min(row_first + 4 * (a_high + 8) + 3, p.m - 1) * p.a_outer + (tile_first * 16 + a_low) * p.a_depth;
  let b_low = lane % 16;
  let b_high = lane / 16;
  var b0: vec4<f32>;
  var b1: vec4<f32>;
  var b_at0 = b_base + min(column_first + 4 * (b_low), p.n - 4) / 4 + (tile_first * 16 + b_high) * p.b_depth;
  var b_at1 = b_base + min(column_first + 4 * (b_low), p.n - 4) / 4 + (tile_first * 16 + b_high + 8) * p.b_depth;
  var c0_0 = vec4<f32>();
  var c1_0 = vec4<f32>();
  var c2_0 = vec4<f32>();
  var c3_0 = vec4<f32>();
  var c4_0 = vec4<f32>();
  var c5_0 = vec4<f32>();
  var c6_0 = vec4<f32>();
  var c7_0 = vec4<f32>();
  var t = tile_first;
  if (t < tile_last) {
        a0 = in0[a_at0];
        a1 = in0[a_at1];
        a2 = in0[a_at2];
        a3 = in0[a_at3];
        a4 = in0[a_at4];
        a5 = in0[a_at5];
        a6 = in0[a_at6];
        a7 = in0[a_at7];
      a_at0 += 16 * p.a_depth;
      a_at1 += 16 * p.a_depth;
      a_at2 += 16 * p.a_depth;
      a_at3 += 16 * p.a_depth;
      a_at4 += 16 * p.a_depth;
      a_at5 += 16 * p.a_depth;
      a_at6 += 16 * p.a_depth;
      a_at7 += 16 * p.a_depth;
        b0 = in1[b_at0];
        b1 = in1[b_at1];
      b_at0 += 16 * p.b_depth;
      b_at1 += 16 * p.b_depth;
      tile_a[(a_low) * 17 + a_high] = vec4<f32>(f32(a0), f32(a1), f32(a2), f32(a3));
      tile_a[(a_low) * 17 + a_high + 8] = vec4<f32>(f32(a4), f32(a5), f32(a6), f32(a7));
      tile_b[(b_high) * 16 + b_low] = vec4<f32>(b0);
      tile_b[(b_high + 8) * 16 + b_low] = vec4<f32>(b1);
  }
  workgroupBarrier();
  for (var next = tile_first + 1; next <= tile_last; next++) {
    t = min(next, tile_last - 1);
    {
        a0 = in0[a_at0];
        a1 = in0[a_at1];
        a2 = in0[a_at2];
        a3 = in0[a_at3];
        a4 = in0[a_at4];
        a5 = in0[a_at5];
        a6 = in0[a_at6];
        a7 = in0[a_at7];
      a_at0 += 16 * p.a_depth;
      a_at1 += 16 * p.a_depth;
      a_at2 += 16 * p.a_depth;
      a_at3 += 16 * p.a_depth;
      a_at4 += 16 * p.a_depth;
      a_at5 += 16 * p.a_depth;
      a_at6 += 16 * p.a_depth;
      a_at7 += 16 * p.a_depth;
        b0 = in1[b_at0];
        b1 = in1[b_at1];
      b_at0 += 16 * p.b_depth;
      b_at1 += 16 * p.b_depth;
    }
      let x0_0 = tile_a[0 + ty];
      let x0_1 = tile_a[8 + ty];
      let y0_0 = tile_b[0 + tx];
      c0_0 += x0_0.x * y0_0;
      c1_0 += x0_0.y * y0_0;
      c2_0 += x0_0.z * y0_0;
      c3_0 += x0_0.w * y0_0;
      c4_0 += x0_1.x * y0_0;
      c5_0 += x0_1.y * y0_0;
      c6_0 += x0_1.z * y0_0;
      c7_0 += x0_1.w * y0_0;
      let x1_0 = tile_a[17 + ty];
      let x1_1 = tile_a[25 + ty];
      let y1_0 = tile_b[16 + tx];
      c0_0 += x1_0.x * y1_0;
      c1_0 += x1_0.y * y1_0;
      c2_0 += x1_0.z * y1_0;
      c3_0 += x1_0.w * y1_0;
      c4_0 += x1_1.x * y1_0;
      c5_0 += x1_1.y * y1_0;
      c6_0 += x1_1.z * y1_0;
      c7_0 += x1_1.w * y1_0;
      let x2_0 = tile_a[34 + ty];
      let x2_1 = tile_a[42 + ty];
      let y2_0 = tile_b[32 + tx];
      c0_0 += x2_0.x * y2_0;
      c1_0 += x2_0.y * y2_0;
      c2_0 += x2_0.z * y2_0;
      c3_0 += x2_0.w * y2_0;
      c4_0 += x2_1.x * y2_0;
      c5_0 += x2_1.y * y2_0;
      c6_0 += x2_1.z * y2_0;
      c7_0 += x2_1.w * y2_0;
      let x3_0 = tile_a[51 + ty];
      let x3_1 = tile_a[59 + ty];
      let y3_0 = tile_b[48 + tx];
      c0_0 += x3_0.x * y3_0;
      c1_0 += x3_0.y * y3_0;
      c2_0 += x3_0.z * y3_0;
      c3_0 += x3_0.w * y3_0;
      c4_0 += x3_1.x * y3_0;
      c5_0 += x3_1.y * y3_0;
      c6_0 += x3_1.z * y3_0;
      c7_0 += x3_1.w * y3_0;
      let x4_0 = tile_a[68 + ty];
      let x4_1 = tile_a[76 + ty];
      let y4_0 = tile_b[64 + tx];
      c0_0 += x4_0.x * y4_0;
      c1_0 += x4_0.y * y4_0;
      c2_0 += x4_0.z * y4_0;
      c3_0 += x4_0.w * y4_0;
      c4_0 += x4_1.x * y4_0;
      c5_0 += x4_1.y * y4_0;
      c6_0 += x4_1.z * y4_0;
      c7_0 += x4_1.w * y4_0;
      let x5_0 = tile_a[85 + ty];
      let x5_1 = tile_a[93 + ty];
      let y5_0 = tile_b[80 + tx];
      c0_0 += x5_0.x * y5_0;
      c1_0 += x5_0.y * y5_0;
      c2_0 += x5_0.z * y5_0;
      c3_0 += x5_0.w * y5_0;
      c4_0 += x5_1.x * y5_0;
      c5_0 += x5_1.y * y5_0;
      c6_0 += x5_1.z * y5_0;
      c7_0 += x5_1.w * y5_0;
      let x6_0 = tile_a[102 + ty];
      let x6_1 = tile_a[110 + ty];
      let y6_0 = tile_b[96 + tx];
      c0_0 += x6_0.x * y6_0;
      c1_0 += x6_0.y * y6_0;
      c2_0 += x6_0.z * y6_0;
      c3_0 += x6_0.w * y6_0;
      c4_0 += x6_1.x * y6_0;
      c5_0 += x6_1.y * y6_0;
      c6_0 += x6_1.z * y6_0;
      c7_0 += x6_1.w * y6_0;
      let x7_0 = tile_a[119 + ty];
      let x7_1 = tile_a[127 + ty];
      let y7_0 = tile_b[112 + tx];
      c0_0 += x7_0.x * y7_0;
      c1_0 += x7_0.y * y7_0;
      c2_0 += x7_0.z * y7_0;
      c3_0 += x7_0.w * y7_0;
      c4_0 += x7_1.x * y7_0;
      c5_0 += x7_1.y * y7_0;
      c6_0 += x7_1.z * y7_0;
      c7_0 += x7_1.w * y7_0;
      let x8_0 = tile_a[136 + ty];
      let x8_1 = tile_a[144 + ty];
      let y8_0 = tile_b[128 + tx];
      c0_0 += x8_0.x * y8_0;
      c1_0 += x8_0.y * y8_0;
      c2_0 += x8_0.z * y8_0;
      c3_0 += x8_0.w * y8_0;
      c4_0 += x8_1.x * y8_0;
      c5_0 += x8_1.y * y8_0;
      c6_0 += x8_1.z * y8_0;
      c7_0 += x8_1.w * y8_0;
      let x9_0 = tile_a[153 + ty];
      let x9_1 = tile_a[161 + ty];
      let y9_0 = tile_b[144 + tx];
      c0_0 += x9_0.x * y9_0;
      c1_0 += x9_0.y * y9_0;
      c2_0 += x9_0.z * y9_0;
      c3_0 += x9_0.w * y9_0;
      c4_0 += x9_1.x * y9_0;
      c5_0 += x9_1.y * y9_0;
      c6_0 += x9_1.z * y9_0;
      c7_0 += x9_1.w * y9_0;
      let x10_0 = tile_a[170 + ty];
      let x10_1 = tile_a[178 + ty];
      let y10_0 = tile_b[160 + tx];
      c0_0 += x10_0.x * y10_0;
      c1_0 += x10_0.y * y10_0;
      c2_0 += x10_0.z * y10_0;
      c3_0 += x10_0.w * y10_0;
      c4_0 += x10_1.x * y10_0;
      c5_0 += x10_1.y * y10_0;
      c6_0 += x10_1.z * y10_0;
      c7_0 += x10_1.w * y10_0;
      let x11_0 = tile_a[187 + ty];
      let x11_1 = tile_a[195 + ty];
      let y11_0 = tile_b[176 + tx];
      c0_0 += x11_0.x * y11_0;
      c1_0 += x11_0.y * y11_0;
      c2_0 += x11_0.z * y11_0;
      c3_0 += x11_0.w * y11_0;
      c4_0 += x11_1.x * y11_0;
      c5_0 += x11_1.y * y11_0;
      c6_0 += x11_1.z * y11_0;
      c7_0 += x11_1.w * y11_0;
      let x12_0 = tile_a[204 + ty];
      let x12_1 = tile_a[212 + ty];
      let y12_0 = tile_b[192 + tx];
      c0_0 += x12_0.x * y12_0;
      c1_0 += x12_0.y * y12_0;
      c2_0 += x12_0.z * y12_0;
      c3_0 += x12_0.w * y12_0;
      c4_0 += x12_1.x * y12_0;
      c5_0 += x12_1.y * y12_0;
      c6_0 += x12_1.z * y12_0;
      c7_0 += x12_1.w * y12_0;
      let x13_0 = tile_a[221 + ty];
      let x13_1 = tile_a[229 + ty];
      let y13_0 = tile_b[208 + tx];
      c0_0 += x13_0.x * y13_0;
      c1_0 += x13_0.y * y13_0;
      c2_0 += x13_0.z * y13_0;
      c3_0 += x13_0.w * y13_0;
      c4_0 += x13_1.x * y13_0;
      c5_0 += x13_1.y * y13_0;
      c6_0 += x13_1.z * y13_0;
      c7_0 += x13_1.w * y13_0;
      let x14_0 = tile_a[238 + ty];
      let x14_1 = tile_a[246 + ty];
      let y14_0 = tile_b[224 + tx];
      c0_0 += x14_0.x * y14_0;
      c1_0 += x14_0.y * y14_0;
      c2_0 += x14_0.z * y14_0;
      c3_0 += x14_0.w * y14_0;
      c4_0 += x14_1.x * y14_0;
      c5_0 += x14_1.y * y14_0;
      c6_0 += x14_1.z * y14_0;
      c7_0 += x14_1.w * y14_0;
      let x15_0 = tile_a[255 + ty];
      let x15_1 = tile_a[263 + ty];
      let y15_0 = tile_b[240 + tx];
      c0_0 += x15_0.x * y15_0;
      c1_0 += x15_0.y * y15_0;
      c2_0 += x15_0.z * y15_0;
      c3_0 += x15_0.w * y15_0;
      c4_0 += x15_1.x * y15_0;
      c5_0 += x15_1.y * y15_0;
      c6_0 += x15_1.z * y15_0;
      c7_0 += x15_1.w * y15_0;
    workgroupBarrier();
      tile_a[(a_low) * 17 + a_high] = vec4<f32>(f32(a0), f32(a1), f32(a2), f32(a3));
      tile_a[(a_low) * 17 + a_high + 8] = vec4<f32>(f32(a4), f32(a5), f32(a6), f32(a7));
      tile_b[(b_high) * 16 + b_low] = vec4<f32>(b0);
      tile_b[(b_high + 8) * 16 + b_low] = vec4<f32>(b1);
    workgroupBarrier();
  }
  let out_base = (split * p.batches + batch) * p.m;
  let n0 = column_first + 0 + 4 * tx;
  let m0 = row_first + 0 + 4 * ty;
  if (m0 < p.m) {
    let row = (out_base + m0) * p.n;
    if (n0 < p.n) { out0[(row + n0) / 4] = vec4<f32>(c0_0); }
  }
  let m1 = row_first + 1 + 4 * ty;
  if (m1 < p.m) {
    let row = (out_base + m1) * p.n;
    if (n0 < p.n) { out0[(row + n0) / 4] = vec4<f32>(c1_0); }
  }
  let m2 = row_first + 2 + 4 * ty;
  if (m2 < p.m) {
    let row = (out_base + m2) * p.n;
    if (n0 < p.n) { out0[(row + n0) / 4] = vec4<f32>(c2_0); }
  }
  let m3 = row_first + 3 + 4 * ty;
  if (m3 < p.m) {
    let row = (out_base + m3) * p.n;
    if (n0 < p.n) { out0[(row + n0) / 4] = vec4<f32>(c3_0); }
  }
  let m4 = row_first + 32 + 4 * ty;
  if (m4 < p.m) {
    let row = (out_base + m4) * p.n;
    if (n0 < p.n) { out0[(row + n0) / 4] = vec4<f32>(c4_0); }
  }
  let m5 = row_first + 33 + 4 * ty;
  if (m5 < p.m) {
    let row = (out_base + m5) * p.n;
    if (n0 < p.n) { out0[(row + n0) / 4] = vec4<f32>(c5_0); }
  }
  let m6 = row_first + 34 + 4 * ty;
  if (m6 < p.m) {
    let row = (out_base + m6) * p.n;
    if (n0 < p.n) { out0[(row + n0) / 4] = vec4<f32>(c6_0); }
  }
  let m7 = row_first + 35 + 4 * ty;
  if (m7 < p.m) {
    let row = (out_base + m7) * p.n;
    if (n0 < p.n) { out0[(row + n0) / 4] = vec4<f32>(c7_0); }
  }
}

struct Params { o0: i32, rows: u32, steps: u32, divisor: f32, s0_0: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out0: array<vec4<f32>>;
fn nan_f32() -> f32 {
  var bits = 0x7fc00000u;
  return bitcast<f32>(bits);
}
fn inf_f32() -> f32 {
  var bits = 0x7f800000u;
  return bitcast<f32>(bits);
}
fn is_nan_f32(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
fn divide_f(a: f32, b: f32) -> f32 {
  let scale = select(1.0, 0.0625, abs(b) > 4.2535296e37);
  return (a * scale) / (b * scale);
}
fn scale_f(y: f32, n: i32) -> f32 {
  let h = n >> 1u;
  return y * bitcast<f32>(u32(h + 127) << 23u) * bitcast<f32>(u32(n - h + 127) << 23u);
}
fn exp_part_f(x: f32, rest: f32, n: f32) -> f32 {
  let r = ((x - n * 0.693359375) - n * -2.12194440e-4) + rest;
  var y = 1.9875691500e-4;
  y = y * r + 1.3981999507e-3;
  y = y * r + 8.3334519073e-3;
  y = y * r + 4.1665795894e-2;
  y = y * r + 1.6666665459e-1;
  y = y * r + 5.0000001201e-1;
  return (y * r * r + r) + 1.0;
}
fn exp_of_sum_f(x: f32, rest: f32) -> f32 {
  let n = round((x + rest) * 1.44269504);
  return scale_f(exp_part_f(x, rest, n), i32(n));
}
fn exp_f(x: f32) -> f32 {
  return select(exp_of_sum_f(clamp(x, -104.0, 89.0), 0.0), x, is_nan_f32(x));
}
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
fn keep_f(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) ^ (p.rows >> 31u));
}
fn each1(a0: f32, a1: f32) -> f32 {
  let a2 = keep_f(a0 - a1);
  let a3 = keep_f(exp_f(a2));
  return a3;
}
fn each2(a0: f32, a1: f32) -> f32 {
  let a2 = keep_f(divide_f(a0, a1));
  return a2;
}
struct Acc_max { value: f32, magnitude: u32 }
fn identity_max() -> Acc_max { return Acc_max(-inf_f32(), 0u); }
fn combine_max(a: Acc_max, b: Acc_max) -> Acc_max {
  return Acc_max(max(a.value, b.value), max(a.magnitude, b.magnitude));
}
fn lift_max(raw: f32, place: u32) -> Acc_max {
  let x = raw;
  return Acc_max(x, bitcast<u32>(x) & 0x7fffffffu);
}
var<workgroup> shared_max: array<Acc_max, 256>;
fn fold_max(value: Acc_max, index: u32) -> f32 {
  var acc = value;
  let own = index % 4u;
  let first = index - own;
  shared_max[index] = acc;
  workgroupBarrier();
  let a0 = shared_max[first + own % 1u + 0u];
  let a1 = shared_max[first + own % 1u + 1u];
  let a2 = shared_max[first + own % 1u + 2u];
  let a3 = shared_max[first + own % 1u + 3u];
  let a0_ = combine_max(a0, a2);
  let a1_ = combine_max(a1, a3);
  let a0__ = combine_max(a0_, a1_);
  acc = a0__;
  workgroupBarrier();
  return select(acc.value, nan_f32(), acc.magnitude > 0x7f800000u);
}
alias Acc_sum = f32;
fn identity_sum() -> Acc_sum { return 0.0; }
fn combine_sum(a: Acc_sum, b: Acc_sum) -> Acc_sum { return a + b; }
fn lift_sum(raw: f32, place: u32) -> Acc_sum { return raw; }
var<workgroup> shared_sum: array<Acc_sum, 256>;
fn fold_sum(value: Acc_sum, index: u32) -> f32 {
  var acc = value;
  let own = index % 4u;
  let first = index - own;
  shared_sum[index] = acc;
  workgroupBarrier();
  let a0 = shared_sum[first + own % 1u + 0u];
  let a1 = shared_sum[first + own % 1u + 1u];
  let a2 = shared_sum[first + own % 1u + 2u];
  let a3 = shared_sum[first + own % 1u + 3u];
  let a0_ = combine_sum(a0, a2);
  let a1_ = combine_sum(a1, a3);
  let a0__ = combine_sum(a0_, a1_);
  acc = a0__;
  workgroupBarrier();
  return acc;
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane_index: u32) {
  let lane = i32(lane_index);
  let own = lane_index % 4u;
  let row_first = linear_group(group, groups) * 64u;
  let row = row_first + lane_index / 4u;
  let live = row < p.rows;
  let end = select(0u, p.steps, live);
  var at0 = p.o0;
  var rest = select(0u, row, live);
  let c0 = i32(rest);
  at0 += c0 * p.s0_0;
  var acc1_0 = identity_max();
  var acc1_1 = identity_max();
  var acc1_2 = identity_max();
  var acc1_3 = identity_max();
  let k0 = own;
  let in_0 = k0 < end;
  var b0_0x = vec4<f32>();
  if (in_0) { b0_0x = in0[at0 + i32(k0)]; }
  let v0_0x = b0_0x.x;
  let v0_0y = b0_0x.y;
  let v0_0z = b0_0x.z;
  let v0_0w = b0_0x.w;
  let k1 = own + 4u;
  let in_1 = k1 < end;
  var b0_1x = vec4<f32>();
  if (in_1) { b0_1x = in0[at0 + i32(k1)]; }
  let v0_1x = b0_1x.x;
  let v0_1y = b0_1x.y;
  let v0_1z = b0_1x.z;
  let v0_1w = b0_1x.w;
  if (in_0) {
    acc1_0 = combine_max(acc1_0, lift_max(v0_0x, 0u));
    acc1_1 = combine_max(acc1_1, lift_max(v0_0y, 0u));
    acc1_2 = combine_max(acc1_2, lift_max(v0_0z, 0u));
    acc1_3 = combine_max(acc1_3, lift_max(v0_0w, 0u));
  }
  if (in_1) {
    acc1_0 = combine_max(acc1_0, lift_max(v0_1x, 0u));
    acc1_1 = combine_max(acc1_1, lift_max(v0_1y, 0u));
    acc1_2 = combine_max(acc1_2, lift_max(v0_1z, 0u));
    acc1_3 = combine_max(acc1_3, lift_max(v0_1w, 0u));
  }
  let v1 = fold_max(combine_max(combine_max(acc1_0, acc1_1), combine_max(acc1_2, acc1_3)), lane_index);
  var acc4_0 = identity_sum();
  var acc4_1 = identity_sum();
  var acc4_2 = identity_sum();
  var acc4_3 = identity_sum();
  let each1_r_0x = each1(v0_0x, v1);
  let v3_0x = each1_r_0x;
  let each1_r_0y = each1(v0_0y, v1);
  let v3_0y = each1_r_0y;
  let each1_r_0z = each1(v0_0z, v1);
  let v3_0z = each1_r_0z;
  let each1_r_0w = each1(v0_0w, v1);
  let v3_0w = each1_r_0w;
  let each1_r_1x = each1(v0_1x, v1);
  let v3_1x = each1_r_1x;
  let each1_r_1y = each1(v0_1y, v1);
  let v3_1y = each1_r_1y;
  let each1_r_1z = each1(v0_1z, v1);
  let v3_1z = each1_r_1z;
  let each1_r_1w = each1(v0_1w, v1);
  let v3_1w = each1_r_1w;
  if (in_0) {
    acc4_0 = combine_sum(acc4_0, lift_sum(v3_0x, 0u));
    acc4_1 = combine_sum(acc4_1, lift_sum(v3_0y, 0u));
    acc4_2 = combine_sum(acc4_2, lift_sum(v3_0z, 0u));
    acc4_3 = combine_sum(acc4_3, lift_sum(v3_0w, 0u));
  }
  if (in_1) {
    acc4_0 = combine_sum(acc4_0, lift_sum(v3_1x, 0u));
    acc4_1 = combine_sum(acc4_1, lift_sum(v3_1y, 0u));
    acc4_2 = combine_sum(acc4_2, lift_sum(v3_1z, 0u));
    acc4_3 = combine_sum(acc4_3, lift_sum(v3_1w, 0u));
  }
  let v4 = fold_sum(combine_sum(combine_sum(acc4_0, acc4_1), combine_sum(acc4_2, acc4_3)), lane_index);
  let each2_r_0x = each2(v3_0x, v4);
  let v5_0x = each2_r_0x;
  let each2_r_0y = each2(v3_0y, v4);
  let v5_0y = each2_r_0y;
  let each2_r_0z = each2(v3_0z, v4);
  let v5_0z = each2_r_0z;
  let each2_r_0w = each2(v3_0w, v4);
  let v5_0w = each2_r_0w;
  let each2_r_1x = each2(v3_1x, v4);
  let v5_1x = each2_r_1x;
  let each2_r_1y = each2(v3_1y, v4);
  let v5_1y = each2_r_1y;
  let each2_r_1z = each2(v3_1z, v4);
  let v5_1z = each2_r_1z;
  let each2_r_1w = each2(v3_1w, v4);
  let v5_1w = each2_r_1w;
  if (in_0) {
    out0[row * p.steps + k0] = vec4<f32>(v5_0x, v5_0y, v5_0z, v5_0w);
  }
  if (in_1) {
    out0[row * p.steps + k1] = vec4<f32>(v5_1x, v5_1y, v5_1z, v5_1w);
  }
}

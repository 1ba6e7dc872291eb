enable f16;
struct Params { o0: i32, count: u32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read_write> out0: array<vec4<f16>>;
fn is_nan_f32(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
fn copysign_f(a: f32, b: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(a) & 0x7fffffffu) | (bitcast<u32>(b) & 0x80000000u));
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
fn tanh_f(x: f32) -> f32 {
  if (is_nan_f32(x)) { return x; }
  let a = min(abs(x), 15.0);
  if (a < 0.625) {
    let z = x * x;
    var y = -5.70498872745e-3;
    y = y * z + 2.06390887954e-2;
    y = y * z - 5.37397155531e-2;
    y = y * z + 1.33314422036e-1;
    y = y * z - 3.33332819422e-1;
    return select(y * z * x + x, x, a < 1.0e-4);
  }
  return copysign_f(1.0 - 2.0 / (exp_f(2.0 * a) + 1.0), x);
}
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
fn chain(a0: f32) -> f32 {
  let a1 = tanh_f(a0);
  return a1;
}
fn apply(i: u32) {
  if (i >= p.count) { return; }
  let b0 = in0[p.o0 + i32(i)];
  let rx = chain(f32(b0.x));
  let ry = chain(f32(b0.y));
  let rz = chain(f32(b0.z));
  let rw = chain(f32(b0.w));
  out0[i] = vec4<f16>(f16(rx), f16(ry), f16(rz), f16(rw));
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane_index: u32) {
  let lane = i32(lane_index);
  let first = linear_group(group, groups) * 512u + lane_index;
  apply(first + 0u);
  apply(first + 256u);
}

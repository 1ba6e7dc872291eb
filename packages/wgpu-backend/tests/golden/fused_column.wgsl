struct Params { o0: i32, o1: i32, o2: i32, count: u32, n1: u32, s0_0: i32, s1_0: i32, s2_0: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> in1: array<f32>;
@group(0) @binding(3) var<storage, read> in2: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> out0: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> out1: array<vec4<u32>>;
fn is_nan_f32(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
fn max_f(a: f32, b: f32) -> f32 {
  if (is_nan_f32(a)) { return a; }
  if (is_nan_f32(b)) { return b; }
  return select(b, a, a >= b);
}
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
fn keep_f(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) ^ (p.count >> 31u));
}
struct Results { r0: f32, r1: bool }
fn chain(a0: f32, a1: f32, a2: f32) -> Results {
  let a3 = keep_f(a0 * a1);
  let a4 = keep_f(a3 + a2);
  let a5 = keep_f(max_f(a4, a2));
  let a6 = is_nan_f32(a5);
  return Results(a5, a6);
}
fn apply(i: u32) {
  if (i >= p.count) { return; }
  var at0 = p.o0;
  var at1 = p.o1;
  var at2 = p.o2;
  var rest = i;
  let c1 = i32(rest % p.n1);
  rest /= p.n1;
  let c0 = i32(rest);
  at0 += c0 * p.s0_0;
  at1 += c0 * p.s1_0;
  at2 += c0 * p.s2_0;
  let b0 = in0[at0 + c1];
  let b1 = in1[at1];
  let b2 = in2[at2 + c1];
  let rx = chain(b0.x, b1, b2.x);
  let ry = chain(b0.y, b1, b2.y);
  let rz = chain(b0.z, b1, b2.z);
  let rw = chain(b0.w, b1, b2.w);
  out0[i] = vec4<f32>(rx.r0, ry.r0, rz.r0, rw.r0);
  out1[i] = vec4<u32>(select(0u, 1u, rx.r1), select(0u, 1u, ry.r1), select(0u, 1u, rz.r1), select(0u, 1u, rw.r1));
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane_index: u32) {
  let lane = i32(lane_index);
  let first = linear_group(group, groups) * 512u + lane_index;
  apply(first + 0u);
  apply(first + 256u);
}

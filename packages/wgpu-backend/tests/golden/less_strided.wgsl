struct Params { o0: i32, o1: i32, count: u32, n1: u32, n2: u32, s0_0: i32, s0_1: i32, s0_2: i32, s1_0: i32, s1_1: i32, s1_2: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<i32>;
@group(0) @binding(2) var<storage, read> in1: array<i32>;
@group(0) @binding(3) var<storage, read_write> out0: array<u32>;
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
fn chain(a0: i32, a1: i32) -> bool {
  let a2 = a0 < a1;
  return a2;
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane_index: u32) {
  let lane = i32(lane_index);
  let i = linear_group(group, groups) * 256u + lane_index;
  if (i >= p.count) { return; }
  var at0 = p.o0;
  var at1 = p.o1;
  var rest = i;
  let c2 = i32(rest % p.n2);
  at0 += c2 * p.s0_2;
  at1 += c2 * p.s1_2;
  rest /= p.n2;
  let c1 = i32(rest % p.n1);
  at0 += c1 * p.s0_1;
  at1 += c1 * p.s1_1;
  rest /= p.n1;
  let c0 = i32(rest);
  at0 += c0 * p.s0_0;
  at1 += c0 * p.s1_0;
  let r = chain(in0[at0], in1[at1]);
  out0[i] = select(0u, 1u, r);
}

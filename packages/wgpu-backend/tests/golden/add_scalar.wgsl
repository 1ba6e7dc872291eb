struct Params { o0: i32, count: u32, c1: f32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out0: array<vec4<f32>>;
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
fn chain(a0: f32, a1: f32) -> f32 {
  let a2 = a0 + a1;
  return a2;
}
fn apply(i: u32) {
  if (i >= p.count) { return; }
  let b0 = in0[p.o0 + i32(i)];
  let rx = chain(b0.x, p.c1);
  let ry = chain(b0.y, p.c1);
  let rz = chain(b0.z, p.c1);
  let rw = chain(b0.w, p.c1);
  out0[i] = vec4<f32>(rx, ry, rz, rw);
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane_index: u32) {
  let lane = i32(lane_index);
  let first = linear_group(group, groups) * 512u + lane_index;
  apply(first + 0u);
  apply(first + 256u);
}

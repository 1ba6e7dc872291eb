struct Params { offset: i32, results: u32, length: u32, chunk: u32, total: u32, divisor: f32, ks0: i32, rs0: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out0: array<f32>;
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
alias Acc = f32;
fn identity() -> Acc { return 0.0; }
fn combine(a: Acc, b: Acc) -> Acc { return a + b; }
fn lift(raw: f32, place: u32) -> Acc { return raw; }
fn kept_at(i: u32) -> i32 {
  var at = p.offset;
  var rest = i;
  let c0 = i32(rest);
  at += c0 * p.ks0;
  return at;
}
var<workgroup> shared_acc: array<Acc, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
  let row = tid / 64u;
  let lane = tid % 64u;
  let result = linear_group(group, groups) * 4u + row;
  let live = result < p.total;
  let part = result / p.results;
  let base = kept_at(result % p.results);
  var k = part * p.chunk + lane;
  let end = select(0u, min(part * p.chunk + p.chunk, p.length), live);
  var acc0 = identity();
  var acc1 = identity();
  var acc2 = identity();
  var acc3 = identity();
  while (k + 192u < end) {
    let v0 = in0[base + i32(k + 0u)];
    let v1 = in0[base + i32(k + 64u)];
    let v2 = in0[base + i32(k + 128u)];
    let v3 = in0[base + i32(k + 192u)];
    acc0 = combine(acc0, lift(v0.x, 4u * (k + 0u) + 0u));
    acc1 = combine(acc1, lift(v0.y, 4u * (k + 0u) + 1u));
    acc2 = combine(acc2, lift(v0.z, 4u * (k + 0u) + 2u));
    acc3 = combine(acc3, lift(v0.w, 4u * (k + 0u) + 3u));
    acc0 = combine(acc0, lift(v1.x, 4u * (k + 64u) + 0u));
    acc1 = combine(acc1, lift(v1.y, 4u * (k + 64u) + 1u));
    acc2 = combine(acc2, lift(v1.z, 4u * (k + 64u) + 2u));
    acc3 = combine(acc3, lift(v1.w, 4u * (k + 64u) + 3u));
    acc0 = combine(acc0, lift(v2.x, 4u * (k + 128u) + 0u));
    acc1 = combine(acc1, lift(v2.y, 4u * (k + 128u) + 1u));
    acc2 = combine(acc2, lift(v2.z, 4u * (k + 128u) + 2u));
    acc3 = combine(acc3, lift(v2.w, 4u * (k + 128u) + 3u));
    acc0 = combine(acc0, lift(v3.x, 4u * (k + 192u) + 0u));
    acc1 = combine(acc1, lift(v3.y, 4u * (k + 192u) + 1u));
    acc2 = combine(acc2, lift(v3.z, 4u * (k + 192u) + 2u));
    acc3 = combine(acc3, lift(v3.w, 4u * (k + 192u) + 3u));
    k += 256u;
  }
  while (k < end) {
    let v0 = in0[base + i32(k + 0u)];
    acc0 = combine(acc0, lift(v0.x, 4u * (k + 0u) + 0u));
    acc1 = combine(acc1, lift(v0.y, 4u * (k + 0u) + 1u));
    acc2 = combine(acc2, lift(v0.z, 4u * (k + 0u) + 2u));
    acc3 = combine(acc3, lift(v0.w, 4u * (k + 0u) + 3u));
    k += 64u;
  }
  var acc = combine(combine(acc0, acc1), combine(acc2, acc3));
  shared_acc[64u * row + lane] = acc;
  workgroupBarrier();
  for (var half = 32u; half > 0u; half >>= 1u) {
    if (lane < half) {
      shared_acc[64u * row + lane] = combine(shared_acc[64u * row + lane], shared_acc[64u * row + lane + half * 1u]);
    }
    workgroupBarrier();
  }
  acc = shared_acc[64u * row + lane];
  if (live && lane == 0u) {
    out0[result] = acc;
  }
}

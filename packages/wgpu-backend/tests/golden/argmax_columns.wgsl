enable f16;
struct Params { offset: i32, results: u32, length: u32, chunk: u32, total: u32, divisor: f32, rn1: u32, ks0: i32, rs0: i32, rs1: i32 }
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read> in0: array<f16>;
@group(0) @binding(2) var<storage, read_write> out0: array<i32>;
@group(0) @binding(3) var<storage, read_write> out1: array<u32>;
fn is_nan_f32(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
fn order_key_f(x: f32) -> i32 {
  let bits = bitcast<i32>(x);
  return select(bits ^ ((bits >> 31u) & 0x7fffffff), 0, (bits & 0x7fffffff) == 0);
}
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
struct Acc { value: i32, place: u32 }
fn key(x: f32) -> i32 { return select(order_key_f(x), 2147483647, is_nan_f32(x)); }
fn identity() -> Acc { return Acc(-2147483647 - 1, 0xffffffffu); }
fn combine(a: Acc, b: Acc) -> Acc {
  let better = b.value > a.value || (b.value == a.value && b.place < a.place);
  return Acc(select(a.value, b.value, better), select(a.place, b.place, better));
}
fn lift(raw: f16, place: u32) -> Acc { return Acc(key(f32(raw)), place); }
fn kept_at(i: u32) -> i32 {
  var at = p.offset;
  var rest = i;
  let c0 = i32(rest);
  at += c0 * p.ks0;
  return at;
}
fn reduced_at(i: u32) -> i32 {
  var at = 0;
  var rest = i;
  let c1 = i32(rest % p.rn1);
  at += c1 * p.rs1;
  rest /= p.rn1;
  let c0 = i32(rest);
  at += c0 * p.rs0;
  return at;
}
fn element(base: i32, k: u32) -> Acc {
  let at = base + reduced_at(k);
  return lift(in0[at], k);
}
var<workgroup> shared_acc: array<Acc, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
  let row = tid % 32u;
  let lane = tid / 32u;
  let result = linear_group(group, groups) * 32u + row;
  let live = result < p.total;
  let part = result / p.results;
  let base = kept_at(result % p.results);
  var k = part * p.chunk + lane;
  let end = select(0u, min(part * p.chunk + p.chunk, p.length), live);
  var acc0 = identity();
  var acc1 = identity();
  var acc2 = identity();
  var acc3 = identity();
  while (k + 24u < end) {
    acc0 = combine(acc0, element(base, k + 0u));
    acc1 = combine(acc1, element(base, k + 8u));
    acc2 = combine(acc2, element(base, k + 16u));
    acc3 = combine(acc3, element(base, k + 24u));
    k += 32u;
  }
  while (k < end) {
    acc0 = combine(acc0, element(base, k));
    k += 8u;
  }
  var acc = combine(combine(acc0, acc1), combine(acc2, acc3));
  shared_acc[tid] = acc;
  workgroupBarrier();
  for (var half = 4u; half > 0u; half >>= 1u) {
    if (lane < half) {
      shared_acc[tid] = combine(shared_acc[tid], shared_acc[tid + half * 32u]);
    }
    workgroupBarrier();
  }
  acc = shared_acc[tid];
  if (live && lane == 0u) {
    out0[result] = acc.value;
    out1[result] = acc.place;
  }
}

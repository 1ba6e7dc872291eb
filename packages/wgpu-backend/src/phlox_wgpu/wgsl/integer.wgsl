// Integer helpers; division and remainder as the numeric spec says: Python's sign, 0 for a zero divisor.

fn floor_divide_i(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  if (b == -1) { return bitcast<i32>(0u - bitcast<u32>(a)); }
  let q = a / b;
  return select(q, q - 1, q * b != a && (a ^ b) < 0);
}

fn floor_divide_u(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0u; }
  return a / b;
}

// Not by %: Vulkan leaves the sign of a remainder of negative numbers open, and NVIDIA makes use of it.
fn fmod_i(a: i32, b: i32) -> i32 {
  if (b == 0 || b == -1) { return 0; }
  return a - (a / b) * b;
}

fn fmod_u(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0u; }
  return a % b;
}

fn remainder_i(a: i32, b: i32) -> i32 {
  let r = fmod_i(a, b);
  return select(r, r + b, r != 0 && (r ^ b) < 0);
}

fn remainder_u(a: u32, b: u32) -> u32 {
  return fmod_u(a, b);
}

fn pow_u(a: u32, b: u32) -> u32 {
  var base = a;
  var rest = b;
  var result = 1u;
  while (rest != 0u) {
    if ((rest & 1u) == 1u) { result *= base; }
    base *= base;
    rest >>= 1u;
  }
  return result;
}

// A negative exponent is an error, reported at the next read.
fn pow_i(a: i32, b: i32) -> i32 {
  if (b < 0) {
    report_error(1u, b, 0);
    return 0;
  }
  return bitcast<i32>(pow_u(bitcast<u32>(a), u32(b)));
}

// Shifts by the width or more: left gives 0, right gives the sign.
fn shift_left_i(a: i32, b: i32) -> i32 {
  return select(0, a << (u32(b) & 31u), u32(b) < 32u);
}

fn shift_left_u(a: u32, b: u32) -> u32 {
  return select(0u, a << (b & 31u), b < 32u);
}

fn shift_right_i(a: i32, b: i32) -> i32 {
  return a >> min(u32(b), 31u);
}

fn shift_right_u(a: u32, b: u32) -> u32 {
  return select(0u, a >> (b & 31u), b < 32u);
}

// The upper 32 bits of the 64-bit product.
fn mul_high_u(a: u32, b: u32) -> u32 {
  let a_low = a & 0xffffu;
  let a_high = a >> 16u;
  let b_low = b & 0xffffu;
  let b_high = b >> 16u;
  let low = a_low * b_low;
  let middle = a_high * b_low + (low >> 16u);
  let cross = a_low * b_high + (middle & 0xffffu);
  return a_high * b_high + (middle >> 16u) + (cross >> 16u);
}

// Truncates; nan gives 0; out of range saturates.
fn to_i32(x: f32) -> i32 {
  if (is_nan_f32(x)) { return 0; }
  if (x >= 2147483648.0) { return 2147483647; }
  if (x <= -2147483648.0) { return -2147483647 - 1; }
  return i32(x);
}

fn to_u32(x: f32) -> u32 {
  if (is_nan_f32(x) || x <= 0.0) { return 0u; }
  if (x >= 4294967296.0) { return 4294967295u; }
  return u32(x);
}

fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}

fn checked_index(index: i32, length: i32) -> u32 {
  let i = select(index, index + length, index < 0);
  if (i < 0 || i >= length) {
    report_error(0u, index, length);
    return 0u;
  }
  return u32(i);
}

// Keeps the first error: the op, what it met, and which kind (0 an index, 1 a negative exponent).
fn report_error(kind: u32, value: i32, length: i32) {
  let was = atomicCompareExchangeWeak(&error_words[0], 0u, PHLOX_OP);
  if (was.exchanged) {
    atomicStore(&error_words[1], bitcast<u32>(value));
    atomicStore(&error_words[2], bitcast<u32>(length));
    atomicStore(&error_words[3], kind);
  }
}

// Trigonometry, and pow. See float.wgsl.

struct Reduced { quadrant: i32, rest: f32 }

// 2/pi in chunks of 32 bits, from 2^-2 down.
fn two_over_pi(i: u32) -> u32 {
  switch (i) {
    case 0u: { return 0x28be60dbu; }
    case 1u: { return 0x9391054au; }
    case 2u: { return 0x7f09d5f4u; }
    case 3u: { return 0x7d4d3770u; }
    case 4u: { return 0x36d8a566u; }
    case 5u: { return 0x4f10e410u; }
    default: { return 0u; }
  }
}

// M. Payne and R. Hanek, 1983: x * 2/pi in fixed point, only the bits that matter.
fn reduce_large_f(x: f32) -> Reduced {
  let bits = bitcast<u32>(x);
  let shift = ((bits >> 23u) & 0xffu) - 126u;
  let i = shift >> 5u;
  let e = shift & 31u;
  var high = two_over_pi(i - 1u);
  var middle = two_over_pi(i);
  var low = two_over_pi(i + 1u);
  if (e > 0u) {
    high = (high << e) | (middle >> (32u - e));
    middle = (middle << e) | (low >> (32u - e));
    low = (low << e) | (two_over_pi(i + 2u) >> (32u - e));
  }
  let m = (bits << 8u) | 0x80000000u;
  // (m * (high:middle:low)) >> 32, modulo 2^64
  let carry = mul_high_u(m, low);
  let sum = m * middle + carry;
  var bottom = sum;
  var top = m * high + mul_high_u(m, middle) + select(0u, 1u, sum < carry);
  var quadrant = i32(top >> 30u);
  top = top & 0x3fffffffu;
  var negative = false;
  if ((top & 0x20000000u) != 0u) {
    quadrant += 1;
    negative = true;
    // 2^62 - value
    bottom = ~bottom + 1u;
    top = 0x3fffffffu - top + select(0u, 1u, bottom == 0u);
  }
  if (top == 0u && bottom == 0u) { return Reduced(quadrant, 0.0); }
  var zeros = countLeadingZeros(top);
  if (top == 0u) { zeros = 32u + countLeadingZeros(bottom); }
  var lead = 0u;
  if (zeros >= 32u) {
    lead = bottom << (zeros - 32u);
  } else {
    lead = (top << zeros) | select(bottom >> (32u - zeros), 0u, zeros == 0u);
  }
  let magnitude = f32(mul_high_u(lead, 0xc90fdaa2u)) * bitcast<f32>((98u - zeros) << 23u);
  var rest = select(magnitude, -magnitude, negative);
  if (x < 0.0) {
    rest = -rest;
    quadrant = -quadrant;
  }
  return Reduced(quadrant, rest);
}

// x = quadrant * pi/2 + rest, |rest| <= pi/4. Three-part constant of Cephes for small angles.
fn reduce_angle_f(x: f32) -> Reduced {
  if (abs(x) > 512.0) { return reduce_large_f(x); }
  let j = round(x * 0.636619772);
  return Reduced(i32(j), ((x - j * 1.5703125) - j * 4.837512969970703125e-4) - j * 7.54978995489188e-8);
}

fn sin_kernel_f(x: f32) -> f32 {
  let z = x * x;
  let y = (-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1;
  return select(y * z * x + x, x, abs(x) < 1.0e-4);
}

fn cos_kernel_f(x: f32) -> f32 {
  let z = x * x;
  let y = (2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2;
  return y * z * z - 0.5 * z + 1.0;
}

fn sin_f(x: f32) -> f32 {
  if (!is_finite_f32(x)) { return nan_f32(); }
  if (abs(x) < 1.0e-4) { return x; }
  let a = reduce_angle_f(x);
  let y = select(sin_kernel_f(a.rest), cos_kernel_f(a.rest), (a.quadrant & 1) == 1);
  return select(y, -y, (a.quadrant & 2) == 2);
}

fn cos_f(x: f32) -> f32 {
  if (!is_finite_f32(x)) { return nan_f32(); }
  let a = reduce_angle_f(x);
  let y = select(cos_kernel_f(a.rest), sin_kernel_f(a.rest), (a.quadrant & 1) == 1);
  return select(y, -y, ((a.quadrant + 1) & 2) == 2);
}

fn tan_f(x: f32) -> f32 {
  if (!is_finite_f32(x)) { return nan_f32(); }
  let a = reduce_angle_f(x);
  let s = sin_kernel_f(a.rest);
  let c = cos_kernel_f(a.rest);
  if ((a.quadrant & 1) == 1) { return -c / s; }
  return select(s / c, x, abs(x) < 1.0e-4);
}

// asin on [0, 1] (Cephes asinf).
fn asin_kernel_f(a: f32) -> f32 {
  let far = a > 0.5;
  let z = select(a * a, 0.5 * (1.0 - a), far);
  let s = select(a, sqrt(z), far);
  var y = 4.2163199048e-2;
  y = y * z + 2.4181311049e-2;
  y = y * z + 4.5470025998e-2;
  y = y * z + 7.4953002686e-2;
  y = y * z + 1.6666752422e-1;
  y = y * z * s + s;
  return select(y, 1.5707963268 - 2.0 * y, far);
}

fn asin_f(x: f32) -> f32 {
  let a = abs(x);
  if (is_nan_f32(x) || a > 1.0) { return nan_f32(); }
  return copysign_f(select(asin_kernel_f(a), a, a < 1.0e-4), x);
}

fn acos_f(x: f32) -> f32 {
  if (is_nan_f32(x) || abs(x) > 1.0) { return nan_f32(); }
  if (x < -0.5) { return 3.1415926536 - 2.0 * asin_kernel_f(sqrt(0.5 * (1.0 + x))); }
  if (x > 0.5) { return 2.0 * asin_kernel_f(sqrt(0.5 * (1.0 - x))); }
  return 1.5707963268 - copysign_f(asin_kernel_f(abs(x)), x);
}

// atan on [0, inf): base angles as sums of two floats (FreeBSD s_atanf.c).
fn atan_kernel_f(x: f32) -> f32 {
  var a = x;
  var high = 0.0;
  var low = 0.0;
  if (x >= 2.4375) {
    high = 1.5707962513;
    low = 7.5497894159e-8;
    a = -1.0 / x;
  } else if (x >= 1.1875) {
    high = 9.8279368877e-1;
    low = 3.4473217170e-8;
    a = (x - 1.5) / (1.0 + 1.5 * x);
  } else if (x >= 0.6875) {
    high = 7.8539812565e-1;
    low = 3.7748947079e-8;
    a = (x - 1.0) / (x + 1.0);
  } else if (x >= 0.4375) {
    high = 4.6364760399e-1;
    low = 5.0121582440e-9;
    a = (2.0 * x - 1.0) / (2.0 + x);
  }
  let z = a * a;
  let w = z * z;
  let even = z * (3.3333328366e-1 + w * (1.4253635705e-1 + w * 6.1687607318e-2));
  let odd = w * (-1.9999158382e-1 + w * -1.0648017377e-1);
  return high - ((a * (even + odd) - low) - a);
}

fn atan_f(x: f32) -> f32 {
  let a = abs(x);
  if (is_nan_f32(x)) { return x; }
  if (is_inf_f32(x)) { return copysign_f(1.5707963268, x); }
  return copysign_f(select(atan_kernel_f(a), a, a < 1.0e-4), x);
}

fn atan2_f(y: f32, x: f32) -> f32 {
  if (unordered_f(x, y)) { return nan_f32(); }
  let ax = abs(x);
  let ay = abs(y);
  var angle = 0.0;
  if (is_inf_f32(x) && is_inf_f32(y)) {
    angle = 0.7853981634;
  } else if (is_inf_f32(y)) {
    angle = 1.5707963268;
  } else if (is_inf_f32(x) || ay == 0.0) {
    angle = 0.0;
  } else if (ay <= ax) {
    angle = atan_f(ay / ax);
  } else {
    angle = 1.5707963268 - atan_f(ax / ay);
  }
  if (bitcast<i32>(x) < 0) { angle = (3.1415926536 - angle) - 8.7422777e-8; }
  return copysign_f(angle, y);
}

// log2(a) as a sum of two floats for a > 0, finite (FreeBSD e_powf.c): no fused multiply-add needed.
fn log2_pair_f(a: f32) -> vec2<f32> {
  let bits = bitcast<u32>(a);
  var n = i32(bits >> 23u) - 127;
  var j = bits & 0x7fffffu;
  if (n == -127) {
    let up = countLeadingZeros(j) - 8u;
    j = (j << up) & 0x7fffffu;
    n = -126 - i32(up);
  }
  var ix = j | 0x3f800000u;
  var k = 0u;
  if (j > 0x1cc471u) {
    if (j < 0x5db3d7u) {
      k = 1u;
    } else {
      n += 1;
      ix -= 0x800000u;
    }
  }
  let ax = bitcast<f32>(ix);
  let base = select(1.0, 1.5, k == 1u);
  let u = ax - base;
  let v = 1.0 / (ax + base);
  let s = u * v;
  let s_h = top_f(s);
  let d_h = bitcast<f32>((((ix >> 1u) & 0xfffff000u) | 0x20000000u) + 0x400000u + (k << 21u));
  let d_l = ax - (d_h - base);
  let s_l = v * ((u - s_h * d_h) - s_h * d_l);
  let z = s * s;
  var r = 2.0697501302e-1;
  r = r * z + 2.3066075146e-1;
  r = r * z + 2.7272811532e-1;
  r = r * z + 3.3333334327e-1;
  r = r * z + 4.2857143283e-1;
  r = r * z + 6.0000002384e-1;
  r = z * z * r + s_l * (s_h + s);
  let z_h = s_h * s_h;
  let t_h = top_f(3.0 + z_h + r);
  let t_l = r - ((t_h - 3.0) - z_h);
  let p_u = s_h * t_h;
  let p_v = s_l * t_h + t_l * s;
  let p_h = top_f(p_u + p_v);
  let p_l = p_v - (p_h - p_u);
  let l_h = 9.6191406250e-1 * p_h;
  let l_l = -1.1736857402e-4 * p_h + p_l * 9.6179670095e-1 + select(0.0, 1.56322085e-6, k == 1u);
  let base_log = select(0.0, 5.84960938e-1, k == 1u);
  let whole = f32(n);
  let t1 = top_f(((l_h + l_l) + base_log) + whole);
  return vec2<f32>(t1, l_l - (((t1 - whole) - base_log) - l_h));
}

// |x|^y for x > 0 finite, y finite and not 0.
fn pow_magnitude_f(x: f32, y_in: f32) -> f32 {
  let y = clamp(y_in, -4294967296.0, 4294967296.0);
  let t = log2_pair_f(x);
  let y1 = top_f(y);
  let p_l = (y - y1) * t.x + y * t.y;
  var p_h = y1 * t.x;
  let z = p_l + p_h;
  if (z > 129.0) { return inf_f32(); }
  if (z < -151.0) { return 0.0; }
  let n = round(z);
  p_h -= n;
  let w1 = bitcast<f32>(bitcast<u32>(p_l + p_h) & 0xffff8000u);
  let u = w1 * 6.93145752e-1;
  let v = (p_l - (w1 - p_h)) * 6.9314718246e-1 + w1 * 1.42860654e-6;
  let q = u + v;
  let w = v - (q - u);
  let g = q * q;
  let c = q - g * (1.6666667163e-1 + g * (-2.7777778450e-3 + g * 6.6137559770e-5));
  let r = (q * c) / (c - 2.0) - (w + q * w);
  return scale_f(1.0 - (r - q), i32(n));
}

// IEEE 754 pow.
fn pow_f(x: f32, y: f32) -> f32 {
  if (y == 0.0 && !is_nan_f32(y)) { return 1.0; }
  if (x == 1.0 && !is_nan_f32(x)) { return 1.0; }
  if (unordered_f(x, y)) { return nan_f32(); }
  let a = abs(x);
  if (is_inf_f32(y)) {
    if (a == 1.0) { return 1.0; }
    return select(0.0, inf_f32(), (a > 1.0) == (y > 0.0));
  }
  let whole = floor(y) == y;
  let odd = whole && abs(y) < 16777216.0 && (i32(y) & 1) == 1;
  let sign = select(1.0, -1.0, odd && bitcast<i32>(x) < 0);
  if (a == 0.0) { return sign * select(0.0, inf_f32(), y < 0.0); }
  if (is_inf_f32(x)) { return sign * select(inf_f32(), 0.0, y < 0.0); }
  if (x < 0.0 && !whole) { return nan_f32(); }
  return sign * pow_magnitude_f(a, y);
}

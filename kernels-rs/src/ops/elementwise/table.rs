//! The elementwise ops: one row per op, sorted. `unary_table!(m)` and `binary_table!(m)` hand all rows to the macro `m`,
//! so kernels and bindings come from the same list.
//!
//! A row is `name class => expression`. The class says which dtypes the op takes and what it gives:
//!
//! | class | operands | result | expression |
//! |---|---|---|---|
//! | `num` | Float, Int | same | generic over [`super::num::Num`] |
//! | `float` | Float | same | one for `f32`, one for `f64` |
//! | `float_far` | Float | same | as `float`; arguments beyond a `LIMIT` go through the last one, of `f64`; of four the first is a kernel for `f64` in AVX-512 |
//! | `float_avx512` | Float | same | as `float`, after kernels in AVX-512 for `f32` and, of four, for `f64` |
//! | `num_far` | Float, Int | same | as `num`, then a fast one for `f32`, and the bound of the quotients that it takes |
//! | `test` | Float, Int | Bool | generic over `Num` |
//! | `compare` | Float, Int | Bool | generic over `Num` |
//! | `turned` | Float, Int | Bool | another row, whose operands change places |
//! | `same` | any | Bool | generic over `PartialEq` |
//! | `int` | Int | same | generic over [`super::num::Int`] |
//! | `bits` | Int, Bool | same | generic over the bit operators |
//! | `bool` | Bool | Bool | on `bool` |
//! | `power` | Float, Int | same | a kernel for `f64` in AVX-512, one for `f32`, one for `f64`, one over `Int`; a negative integer exponent is an error |
//! | `quotient` | Float, Int | Float | as `float`; integers are converted to the default float first |
//!
//! float16 and bfloat16 are computed through the `f32` expression. `M` is the [`crate::math::Fma`] of the level.

/// Rows of one operand.
macro_rules! unary_table {
    ($then:ident) => {
        $then! {
            abs num => |x| x.absolute();
            acos float => |x| trigonometric::acos::<M>(x), |x| x.acos();
            acosh float => |x| exponential::acosh::<M>(x), |x| libm::acosh(x);
            asin float => |x| trigonometric::asin::<M>(x), |x| x.asin();
            asinh float => |x| exponential::asinh::<M>(x), |x| libm::asinh(x);
            atan float => |x| trigonometric::atan::<M>(x), |x| x.atan();
            atanh float => |x| exponential::atanh::<M>(x), |x| libm::atanh(x);
            bitwise_invert bits => |x| !x;
            ceil num => |x| x.round_up();
            cos float_far => avx512::wide_cos, |x| trigonometric::cos::<M>(x), |x| double::cos::<M>(x), |x| x.cos();
            cosh float => |x| exponential::cosh::<M>(x), |x| x.cosh();
            erf float_avx512 => avx512::erf, avx512::wide_erf, |x| special::erf::<M>(x), |x| libm::erf(x);
            erfc float_avx512 => avx512::erfc, |x| special::erfc::<M>(x), |x| libm::erfc(x);
            erfinv float_avx512 => avx512::erfinv, |x| special::erfinv::<M>(x), |x| special::double::erfinv(x);
            exp float_avx512 => avx512::exp, avx512::wide_exp, |x| exponential::exp::<M>(x), |x| double::exp::<M>(x);
            expm1 float => |x| exponential::expm1::<M>(x), |x| x.exp_m1();
            floor num => |x| x.round_down();
            gelu float_avx512 => avx512::gelu, |x| special::gelu::<M>(x), |x| special::double::gelu(x);
            gelu_tanh float => |x| special::gelu_tanh::<M>(x), |x| special::double::gelu_tanh(x);
            isfinite test => |x| x.finite();
            isinf test => |x| x.infinite();
            isnan test => |x| x.not_a_number();
            lgamma float_avx512 => avx512::lgamma, |x| special::lgamma::<M>(x), |x| double::lgamma::<M>(x);
            log float_avx512 => avx512::log, avx512::wide_log, |x| exponential::log::<M>(x), |x| double::log::<M>(x);
            log10 float => |x| exponential::log10::<M>(x), |x| x.log10();
            log1p float => |x| exponential::log1p::<M>(x), |x| x.ln_1p();
            log2 float => |x| exponential::log2::<M>(x), |x| x.log2();
            log_sigmoid float => |x| special::log_sigmoid::<M>(x), |x| -special::double::softplus(-x);
            logical_not bool => |x| !x;
            negative num => |x| x.opposite();
            positive num => |x| x;
            reciprocal float => |x| 1.0 / x, |x| 1.0 / x;
            relu num => |x| x.larger(T::ZERO);
            round num => |x| x.round_even();
            rsqrt float => |x| 1.0 / x.sqrt(), |x| 1.0 / x.sqrt();
            sigmoid float_avx512 => avx512::sigmoid, |x| exponential::sigmoid::<M>(x), |x| special::double::sigmoid(x);
            sign num => |x| x.signum_zero();
            silu float_avx512 => avx512::silu, |x| special::silu::<M>(x), |x| special::double::silu(x);
            sin float_far => avx512::wide_sin, |x| trigonometric::sin::<M>(x), |x| double::sin::<M>(x), |x| x.sin();
            sinh float => |x| exponential::sinh::<M>(x), |x| x.sinh();
            softplus float => |x| special::softplus::<M>(x), |x| special::double::softplus(x);
            sqrt float_avx512 => avx512::sqrt, |x| x.sqrt(), |x| x.sqrt();
            square num => |x| x.times(x);
            tan float_far => |x| trigonometric::tan::<M>(x), |x| x.tan();
            tanh float_avx512 => avx512::tanh, |x| exponential::tanh::<M>(x), |x| double::tanh::<M>(x);
            trunc num => |x| x.round_zero();
        }
    };
}

/// Rows of two operands.
macro_rules! binary_table {
    ($then:ident) => {
        $then! {
            add num => |a, b| a.plus(b);
            atan2 float => |a, b| trigonometric::atan2::<M>(a, b), |a, b| a.atan2(b);
            bitwise_and bits => |a, b| a & b;
            bitwise_left_shift int => |a, b| a.shifted_left(b);
            bitwise_or bits => |a, b| a | b;
            bitwise_right_shift int => |a, b| a.shifted_right(b);
            bitwise_xor bits => |a, b| a ^ b;
            divide quotient => |a, b| a / b, |a, b| a / b;
            elu float => |x, a| special::elu::<M>(x, a), |x, a| if x > 0.0 { x } else { a * x.exp_m1() };
            equal same => |a, b| a == b;
            floor_divide num_far => |a, b| a.floor_divided(b), |a, b| division::floor_divide::<M>(a, b), division::WHOLE;
            fmod num_far => |a, b| a.trunc_remainder(b), |a, b| division::fmod::<M>(a, b), division::EXACT;
            gelu_backward float_avx512 => avx512::gelu_backward, |g, x| special::gelu_backward::<M>(g, x), |g, x| special::double::gelu_backward(g, x);
            gelu_tanh_backward float => |g, x| special::gelu_tanh_backward::<M>(g, x), |g, x| special::double::gelu_tanh_backward(g, x);
            greater turned => less;
            greater_equal turned => less_equal;
            hypot float => |a, b| trigonometric::hypot(a, b), |a, b| a.hypot(b);
            leaky_relu float => |x, s| if x >= 0.0 { x } else { x * s }, |x, s| if x >= 0.0 { x } else { x * s };
            less compare => |a, b| a < b;
            less_equal compare => |a, b| a <= b;
            logaddexp float => |a, b| exponential::logaddexp::<M>(a, b), |a, b| special::double::logaddexp(a, b);
            logical_and bool => |a, b| a & b;
            logical_or bool => |a, b| a | b;
            logical_xor bool => |a, b| a ^ b;
            maximum num => |a, b| a.larger(b);
            minimum num => |a, b| a.smaller(b);
            multiply num => |a, b| a.times(b);
            not_equal same => |a, b| a != b;
            pow power => avx512::wide_pow, |a, b| exponential::pow::<M>(a, b), |a, b| a.powf(b), |a, b| a.raised(b);
            remainder num_far => |a, b| a.floor_remainder(b), |a, b| division::remainder::<M>(a, b), division::EXACT;
            silu_backward float => |g, x| special::silu_backward::<M>(g, x), |g, x| special::double::silu_backward(g, x);
            subtract num => |a, b| a.minus(b);
        }
    };
}

pub(crate) use {binary_table, unary_table};

//! Kernels of [`crate::math::avx512_f32`] and of [`crate::math::avx512_f64`].

use super::power::map2_power;
use super::run::{Run, operand, result};
use crate::math::avx512_f32::{self, STEP, load, store};
use crate::math::avx512_f64;

macro_rules! kernels {
    ($($name:ident $ty:ident $module:ident $run:ident;)*) => {
        $(
            /// # Safety
            /// As for [`super::run::Kernel`]; the machine has the features.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
            pub(crate) unsafe fn $name(run: &Run) {
                let (x, out) = (operand::<$ty>(run, 0), result::<$ty>(run));
                $module::$run(x.as_ptr(), out.as_mut_ptr(), out.len());
            }
        )*
    };
}

kernels! {
    erf f32 avx512_f32 erf_run;
    erfc f32 avx512_f32 erfc_run;
    erfinv f32 avx512_f32 erfinv_run;
    exp f32 avx512_f32 exp_run;
    gelu f32 avx512_f32 gelu_run;
    lgamma f32 avx512_f64 lgamma_run;
    log f32 avx512_f32 log_run;
    sigmoid f32 avx512_f32 sigmoid_run;
    silu f32 avx512_f32 silu_run;
    sqrt f32 avx512_f32 sqrt_run;
    tanh f32 avx512_f32 tanh_run;
    wide_cos f64 avx512_f64 cos_run;
    wide_erf f64 avx512_f64 erf_run;
    wide_exp f64 avx512_f64 exp_run;
    wide_log f64 avx512_f64 log_run;
    wide_sin f64 avx512_f64 sin_run;
}

/// # Safety
/// As for [`gelu`], of `f64`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
pub(crate) unsafe fn wide_pow(run: &Run) {
    // The parts that are asked for are parts of it.
    map2_power::<f64>(run, |part| {
        let (x, y, out) = (operand::<f64>(part, 0), operand::<f64>(part, 1), result::<f64>(part));
        let steps = part.unit.map(usize::from);
        avx512_f64::pow_run((x.as_ptr(), steps[0]), (y.as_ptr(), steps[1]), out.as_mut_ptr(), out.len());
    });
}

/// # Safety
/// As for [`gelu`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
pub(crate) unsafe fn gelu_backward(run: &Run) {
    // Whole steps lie inside the run, the last elements go through buffers.
    let (g, x, out) = (operand::<f32>(run, 0), operand::<f32>(run, 1), result::<f32>(run));
    let (whole, left) = (out.len() / STEP * STEP, out.len() % STEP);
    let last = |values: &[f32], moves: bool| {
        let mut rest = [if moves { 0.0 } else { values.first().copied().unwrap_or(0.0) }; STEP];
        if moves {
            rest[..left].copy_from_slice(&values[whole..]);
        }
        rest
    };
    // An operand that does not move stays in its buffer.
    let (last_g, last_x) = (last(g, run.unit[0]), last(x, run.unit[1]));
    let (from_g, step_g) = if run.unit[0] { (g.as_ptr(), 1) } else { (last_g.as_ptr(), 0) };
    let (from_x, step_x) = if run.unit[1] { (x.as_ptr(), 1) } else { (last_x.as_ptr(), 0) };
    for at in (0..whole).step_by(STEP) {
        let (g, x) = (load(from_g.add(at * step_g)), load(from_x.add(at * step_x)));
        store(avx512_f32::gelu_backward(g, x), out.as_mut_ptr().add(at));
    }
    let mut rest = [0.0; STEP];
    store(avx512_f32::gelu_backward(load(last_g.as_ptr()), load(last_x.as_ptr())), rest.as_mut_ptr());
    out[whole..].copy_from_slice(&rest[..left]);
}

#[cfg(test)]
mod tests;

//! Kernels of [`crate::math::tabled`].

use super::run::{Run, operand, result};
use crate::math::tabled::{self, STEP, load, store};

macro_rules! kernels {
    ($($name:ident $run:ident;)*) => {
        $(
            /// # Safety
            /// As for [`super::run::Kernel`]; the machine has the features.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
            pub(crate) unsafe fn $name(run: &Run) {
                // SAFETY: the caller promises a run with an operand and a result of its length, apart from one another,
                // and the features.
                unsafe {
                    let (x, out) = (operand::<f32>(run, 0), result::<f32>(run));
                    tabled::$run(x.as_ptr(), out.as_mut_ptr(), out.len());
                }
            }
        )*
    };
}

kernels! {
    erf erf_run;
    exp exp_run;
    gelu gelu_run;
    log log_run;
    sigmoid sigmoid_run;
    silu silu_run;
    tanh tanh_run;
}

/// # Safety
/// As for [`gelu`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
pub(crate) unsafe fn gelu_backward(run: &Run) {
    // SAFETY: the caller promises the features and a run; whole steps lie inside the run, the last elements go through
    // buffers.
    unsafe {
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
            store(tabled::gelu_backward(g, x), out.as_mut_ptr().add(at));
        }
        let mut rest = [0.0; STEP];
        store(tabled::gelu_backward(load(last_g.as_ptr()), load(last_x.as_ptr())), rest.as_mut_ptr());
        out[whole..].copy_from_slice(&rest[..left]);
    }
}

#[cfg(test)]
mod tests {
    use crate::Array;
    use crate::array::scalar::Scalar;
    use crate::math::{Fused, special};
    use crate::ops::elementwise::kernel::{binary, unary};
    use crate::ops::elementwise::{Operand, binary as apply_binary, unary as apply_unary};

    fn close(got: f32, want: f32) -> bool {
        (got - want).abs() <= 1e-6 * (1.0 + want.abs()) || got == want || (got.is_nan() && want.is_nan())
    }

    #[test]
    fn every_length_equals_the_plain_formula() {
        let special_values = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40, 14.4, -14.4, -14.0];
        for len in 1..150 {
            let x: Vec<f32> =
                (0..len)
                    .map(|i| {
                        if i % 7 == 0 {
                            special_values[i / 7 % 10]
                        } else {
                            ((i * 37 + len) % 301) as f32 / 10.0 - 15.0
                        }
                    })
                    .collect();
            let g: Vec<f32> = (0..len).map(|i| ((i * 11) % 23) as f32 - 11.0).collect();
            let (xs, gs) = (Array::from_slice(&x, &[len]).unwrap(), Array::from_slice(&g, &[len]).unwrap());
            let y = apply_unary(&unary::gelu, &xs).unwrap();
            let slopes = apply_binary(&binary::gelu_backward, Operand::Array(&gs), Operand::Array(&xs)).unwrap();
            let one = apply_binary(&binary::gelu_backward, Operand::Scalar(Scalar::Float(1.0)), Operand::Array(&xs));
            let at_two = apply_binary(&binary::gelu_backward, Operand::Array(&gs), Operand::Scalar(Scalar::Float(2.0)));
            let (one, at_two) = (one.unwrap(), at_two.unwrap());
            let rows = [&y, &slopes, &one, &at_two].map(|array| array.as_slice::<f32>().unwrap());
            for i in 0..len {
                let backward = |g: f32, x: f32| special::gelu_backward::<Fused>(g, x);
                let want =
                    [special::gelu::<Fused>(x[i]), backward(g[i], x[i]), backward(1.0, x[i]), backward(g[i], 2.0)];
                for (row, want) in rows.iter().zip(want) {
                    let slack = if g[i] == 0.0 { 1.0 } else { g[i].abs().max(1.0) };
                    assert!(close(row[i] / slack, want / slack), "{len} {i}: {} {want} at {} {}", row[i], x[i], g[i]);
                }
            }
        }
    }
}

use super::*;
use crate::ops::samples::Rng;
use rustfft::num_complex::Complex;
use rustfft::{FftNum, FftPlanner};

fn lines_are_as_of_another_crate<T: Real + FftNum>(tolerance: f64) {
    let mut rng = Rng::new(5);
    for length in [128, 256, 512, 1024, 2048, 4096] {
        let Some(plan) = Powers::<T>::new(length) else {
            assert!(lane_count::<T>() < EIGHT);
            continue;
        };
        let mut pairs = vec![T::default(); 2 * length];
        pairs.fill_with(|| <T as Element>::from_f64(rng.below(1000) as f64 / 500.0 - 1.0));
        let (re, im): (Vec<T>, Vec<T>) = pairs.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
        let mut wanted: Vec<_> = pairs.chunks(2).map(|pair| Complex::new(pair[0].to_f64(), pair[1].to_f64())).collect();
        FftPlanner::new().plan_fft_forward(length).process(&mut wanted);
        for from in [Numbers::Parts(re.as_ptr(), im.as_ptr()), Numbers::Pairs(pairs.as_ptr())] {
            let (mut real, mut imag) = (vec![T::default(); length], vec![T::default(); length]);
            let mut room = vec![T::default(); plan.room()];
            // SAFETY: all were made as long as that just now.
            unsafe { plan.run(from, Rows::over(&mut real, &mut imag, 1), room.as_mut_ptr()) };
            for (at, wanted) in wanted.iter().enumerate() {
                let (re, im) = (real[at].to_f64() - wanted.re, imag[at].to_f64() - wanted.im);
                assert!(re.hypot(im) <= tolerance * length as f64, "{re}, {im} at {at} of {length}");
            }
        }
    }
    assert!([64, 100, 384, 8192].iter().all(|&length| Powers::<T>::new(length).is_none()));
}

#[test]
fn lines_of_powers_of_two_are_as_of_another_crate() {
    lines_are_as_of_another_crate::<f32>(3e-8);
    lines_are_as_of_another_crate::<f64>(1e-16);
}

use super::*;
use crate::dtype::{BF16, F16};
use crate::machine::threads::set_num_threads;

fn word_stream(count: usize, key: u64, counter: u64) -> Vec<u32> {
    let mut out = vec![0; count];
    philox::words(&mut out, key, counter);
    out
}

#[test]
fn same_bits_for_any_thread_count() {
    let count = 70_001;
    let expected = word_stream(count, 7, 9);
    for threads in 1..=4 {
        set_num_threads(threads);
        assert!(random_bits(count, 7, 9, DType::U32).unwrap().to_vec::<u32>().unwrap() == expected);
    }
    assert_eq!(
        random_bits(2, 7, 9, DType::U8).unwrap().to_vec::<u8>().unwrap(),
        [expected[0] as u8, expected[1] as u8]
    );
    assert_eq!(random_bits(0, 7, 9, DType::U32).unwrap().numel(), 0);
}

#[test]
fn uniforms_are_the_upper_bits() {
    let count = 5003;
    let words = word_stream(2 * count, 1 << 40, 1 << 33);
    let value = |dtype| random_uniform(&[count], -2.0, 3.0, dtype, 1 << 40, 1 << 33).unwrap();
    let (single, half) = (value(DType::F32).to_vec::<f32>().unwrap(), value(DType::F16).to_vec::<F16>().unwrap());
    let (brain, double) = (value(DType::BF16).to_vec::<BF16>().unwrap(), value(DType::F64).to_vec::<f64>().unwrap());
    for at in 0..count {
        assert_eq!(single[at], -2.0 + (words[at] >> 8) as f32 / (1u32 << 24) as f32 * 5.0);
        assert_eq!(half[at].0, F16::from_f32(-2.0 + (words[at] >> 21) as f32 / 2048.0 * 5.0).0);
        assert_eq!(brain[at].0, BF16::from_f32(-2.0 + (words[at] >> 24) as f32 / 256.0 * 5.0).0);
        let bits = ((words[2 * at] >> 5) as u64) << 26 | (words[2 * at + 1] >> 6) as u64;
        assert_eq!(double[at], -2.0 + bits as f64 / (1u64 << 53) as f64 * 5.0);
    }
    assert!(random_uniform(&[2], 0.0, 1.0, DType::I32, 0, 0).is_err());
}

#[test]
fn normals_follow_box_and_muller() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let out = random_normal(&[33, 101], 1.5, 2.0, dtype, 5, 77).unwrap();
        let got = cast(&out, DType::F64).unwrap().to_vec::<f64>().unwrap();
        let words = word_stream(4 * 33 * 101 + 4, 5, 77);
        let unit = |at: usize| match dtype {
            DType::F64 => unit64([words[2 * at], words[2 * at + 1]]),
            _ => unit::<8>(words[at]) as f64,
        };
        let tolerance = match dtype {
            DType::F64 => 1e-14,
            DType::F32 => 3e-6,
            DType::F16 => 8e-3,
            _ => 6e-2,
        };
        for (at, &got) in got.iter().enumerate() {
            let (radius, angle) = ((-2.0 * (1.0 - unit(at & !1)).ln()).sqrt(), std::f64::consts::TAU * unit(at | 1));
            let expected = 1.5 + 2.0 * radius * if at % 2 == 0 { angle.cos() } else { angle.sin() };
            assert!((got - expected).abs() <= tolerance, "{dtype:?} {at}: {got} {expected}");
        }
    }
    assert!(random_normal(&[2], 0.0, 1.0, DType::U8, 0, 0).is_err());
}

#[test]
fn normals_do_not_depend_on_threads_and_look_normal() {
    let count = 200_001;
    set_num_threads(1);
    let expected = random_normal(&[count], 0.0, 1.0, DType::F32, 3, 4).unwrap().to_vec::<f32>().unwrap();
    for threads in 2..=4 {
        set_num_threads(threads);
        assert!(random_normal(&[count], 0.0, 1.0, DType::F32, 3, 4).unwrap().to_vec::<f32>().unwrap() == expected);
    }
    let moment = |power: i32| expected.iter().map(|&z| (z as f64).powi(power)).sum::<f64>() / count as f64;
    assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.02 && (moment(4) - 3.0).abs() < 0.1);
    // A shorter draw is the beginning of a longer one.
    let short = random_normal(&[1001], 0.0, 1.0, DType::F32, 3, 4).unwrap().to_vec::<f32>().unwrap();
    assert!(short == expected[..1001]);
}

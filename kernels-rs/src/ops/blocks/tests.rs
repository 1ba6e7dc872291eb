use super::*;
use crate::ops::samples::Rng;

const FORMS: [&str; 8] = ["Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0"];
const NARROW: [&str; 2] = ["BF16", "F16"];

fn size_of(form: &str) -> Result<(usize, usize)> {
    of_stored!(form, F => Ok((<F as Stored>::SIZE, <F as Stored>::BYTES)))
}

/// Blocks of random bytes, whose scales are small numbers.
fn random(form: &str, rows: usize, inputs: usize) -> Array {
    let ((size, bytes), mut rng) = (size_of(form).unwrap(), Rng::new(inputs as u64));
    let mut found: Vec<u8> = (0..rows * inputs / size * bytes).map(|_| rng.bits() as u8).collect();
    let scales: &[usize] = match form {
        "Q4_1" | "Q4_K" | "Q5_1" | "Q5_K" => &[0, 2],
        "Q6_K" => &[208],
        _ => &[0],
    };
    if form == "BF16" {
        found.chunks_exact_mut(bytes).for_each(|number| number[1] = number[1] & 0x81 | 0x3e);
        return Array::from_slice(&found, &[rows, inputs * bytes]).unwrap();
    }
    for block in found.chunks_exact_mut(bytes) {
        for &at in scales {
            block[at + 1] = block[at + 1] & 0x83 | 0x20;
        }
    }
    Array::from_slice(&found, &[rows, inputs / size * bytes]).unwrap()
}

fn floats(shape: &[usize]) -> Array {
    let mut rng = Rng::new(3);
    let values: Vec<f32> =
        (0..shape.iter().product::<usize>()).map(|_| (rng.below(2001) as f32 - 1000.0) / 700.0).collect();
    Array::from_slice(&values, shape).unwrap()
}

fn values(x: &Array) -> Vec<f32> {
    x.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn few_rows_are_multiplied_as_many_are() {
    for form in FORMS.into_iter().chain(NARROW) {
        let size = size_of(form).unwrap().0;
        for (rows, inputs, outputs) in [(1, 3 * size, 700), (7, 2 * size, 33), (4, size, 5), (2, 35 * size, 9)] {
            let (blocks, bias) = (random(form, outputs, inputs), floats(&[outputs]));
            let x = floats(&[MANY + rows, inputs]);
            let all = values(&blocks_linear(&x, &blocks, Some(&bias), form, true).unwrap());
            let some = view::slice(&x, &[0, 0], &[rows, inputs], &[1, 1]).unwrap();
            let found = values(&blocks_linear(&some, &blocks, Some(&bias), form, true).unwrap());
            let largest = all.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            assert_eq!(found.len(), rows * outputs);
            for (found, all) in found.iter().zip(&all) {
                assert!((found - all).abs() <= 2e-6 * largest, "{form} {rows} {inputs}: {found} {all}");
            }
        }
    }
}

#[test]
fn whole_numbers_are_multiplied_as_floats_are() {
    for form in FORMS {
        let (size, _) = size_of(form).unwrap();
        for (rows, inputs, outputs) in
            [(1, 17 * size, 3), (5, size, 33), (6, 16 * size, 64), (40, 3 * size, 31), (13, 35 * size, 700)]
        {
            let (blocks, bias, mut rng) = (random(form, outputs, inputs), floats(&[outputs]), Rng::new(7));
            // The largest of each group is 127, so that no number is rounded.
            let whole = |at: usize| if at.is_multiple_of(GROUP) { 127 } else { rng.below(255) as i32 - 127 };
            let x: Vec<f32> = (0..rows * inputs).map(whole).map(|v| v as f32).collect();
            let x = Array::from_slice(&x, &[rows, inputs]).unwrap();
            let [found, all] =
                [true, false].map(|rounded| values(&blocks_linear(&x, &blocks, Some(&bias), form, rounded).unwrap()));
            let largest = all.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            assert_eq!(found.len(), rows * outputs);
            for (found, all) in found.iter().zip(&all) {
                assert!((found - all).abs() <= 4e-6 * largest, "{form} {rows} {inputs}: {found} {all}");
            }
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn registers_unpack_the_numbers_that_loops_do() {
    fn check<F: Form>(form: &str) {
        if crate::machine::simd::level() < crate::machine::simd::Level::Avx512 {
            return;
        }
        let blocks = random(form, 1, 512);
        let row = blocks.as_slice::<u8>().unwrap();
        let mut factors = [[0.0f32; 16]; 2];
        // SAFETY: the level was asked for; there are that many parts, and the lists are as long as registers.
        unsafe { store_factors::<F>(row, &mut factors) };
        if <F as Form>::SIZE < PART {
            let mut two = [[0.0f32; 4]; 2];
            // SAFETY: as above, of the first two blocks.
            unsafe { store_two::<F>(row, &mut two) };
            assert_eq!(two.map(|by| [by[0], by[1]]), factors.map(|by| [by[0], by[1]]), "{form}");
        }
        for at in 0..F::AT_ONCE {
            let (mut room, mut whole, mut wide) = ([0; forms::MOST], [0; PART], [0u8; PART]);
            let (from, part) = forms::blocks_of::<F>(row, at, &mut room);
            F::whole(from, part, &mut whole);
            // SAFETY: the level was asked for; the register is as long as the list.
            unsafe { store::<F>(from, part, &mut wide) };
            assert_eq!(whole, wide, "{form} {at}");
            let (by, least) = F::factors(from, part);
            for share in 0..PART / SHARE {
                let lane = (at * 4 + share) * F::SHARES / 4;
                assert_eq!([by[share], least[share]], [factors[0][lane], factors[1][lane]], "{form} {at} {share}");
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
    unsafe fn store_factors<F: Form>(row: &[u8], to: &mut [[f32; 16]; 2]) {
        let (factors, least) = F::factors512(row.as_ptr());
        std::arch::x86_64::_mm512_storeu_ps(to[0].as_mut_ptr(), factors);
        std::arch::x86_64::_mm512_storeu_ps(to[1].as_mut_ptr(), least);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
    unsafe fn store_two<F: Form>(row: &[u8], to: &mut [[f32; 4]; 2]) {
        let (factors, least) = F::factors128(row.as_ptr());
        std::arch::x86_64::_mm_storeu_ps(to[0].as_mut_ptr(), factors);
        std::arch::x86_64::_mm_storeu_ps(to[1].as_mut_ptr(), least);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn store<F: Form>(from: &[u8], part: usize, to: &mut [u8; PART]) {
        std::arch::x86_64::_mm512_storeu_si512(to.as_mut_ptr().cast(), F::whole512(from.as_ptr(), part));
    }

    fn run(form: &str) -> Result<()> {
        of_form!(form, F => { check::<F>(form); Ok(()) })
    }
    for form in FORMS {
        run(form).unwrap();
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn smaller_registers_add_what_loops_do() {
    fn check<F: Form>(form: &str) {
        if crate::machine::simd::level() < crate::machine::simd::Level::Avx2 {
            return;
        }
        let (inputs, rows) = (3 * <F as Form>::SIZE, 2);
        let (blocks, x) = (random(form, 1, inputs), floats(&[rows, inputs]));
        let (row, count) = (blocks.as_slice::<u8>().unwrap(), inputs.div_ceil(PART));
        let rows = dots::Rows::new::<F>(x.as_slice::<f32>().unwrap(), (rows, inputs));
        let [mut found, mut all] = [[0.0; forms::TOGETHER]; 2];
        // SAFETY: the level was asked for.
        let few = unsafe { avx2::Rows::new::<F>(x.as_slice::<f32>().unwrap(), (2, inputs)) };
        few.dots::<F>(row, 0..2, &mut found);
        dots::plain::<F>(row, rows.parts(), count, &mut all);
        for (found, all) in found.iter().zip(all) {
            assert!((found - all).abs() <= 1e-5 * all.abs().max(1.0), "{form}: {found} {all}");
        }
    }

    fn run(form: &str) -> Result<()> {
        of_form!(form, F => { check::<F>(form); Ok(()) })
    }
    for form in FORMS {
        run(form).unwrap();
    }
}

#[test]
fn a_group_with_nan_or_infinity_gives_nan() {
    let blocks = random("Q8_0", 3, 64);
    for bad in [f32::NAN, f32::INFINITY] {
        for (place, rows) in (0..64).flat_map(|place| [(place, 1), (place, FEW + 1)]) {
            let mut x = values(&floats(&[64]));
            x[place] = bad;
            let x = Array::from_slice(&x.repeat(rows), &[rows, 64]).unwrap();
            let found = values(&blocks_linear(&x, &blocks, None, "Q8_0", true).unwrap());
            assert!(found.iter().all(|v| v.is_nan()), "{bad} at {place}, {rows}");
        }
    }
}

#[test]
fn narrow_floats_may_begin_at_any_byte() {
    for form in NARROW {
        let (weight, x) = (random(form, 3, 40), floats(&[2, 40]));
        let bytes = weight.as_slice::<u8>().unwrap();
        let moved = Array::from_slice(&[&[0u8][..], bytes].concat(), &[241]).unwrap();
        let moved = moved.with_geometry(&[3, 80], &[80, 1], 1).unwrap();
        let found = blocks_linear(&x, &moved, None, form, false).unwrap();
        assert_eq!(values(&found), values(&blocks_linear(&x, &weight, None, form, false).unwrap()));
    }
}

#[test]
fn more_columns_than_are_made_at_a_time_are_those_of_each() {
    let (inputs, outputs) = (64, AT_A_TIME / 64 + 70);
    let (weight, x, bias) = (random("F16", outputs, inputs), floats(&[MANY + 1, inputs]), floats(&[outputs]));
    let found = values(&blocks_linear(&x, &weight, Some(&bias), "F16", false).unwrap());
    let first = outputs - 5;
    let some = view::slice(&weight, &[first, 0], &[5, 128], &[1, 1]).unwrap();
    let last = view::slice(&bias, &[first], &[5], &[1]).unwrap();
    let expected = values(&blocks_linear(&x, &some, Some(&last), "F16", false).unwrap());
    for row in 0..=MANY {
        for (found, expected) in found[row * outputs + first..][..5].iter().zip(&expected[row * 5..]) {
            assert!((found - expected).abs() <= 1e-4, "{row}: {found} {expected}");
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let (x, blocks) = (floats(&[2, 64]), random("Q8_0", 3, 64));
    assert!(blocks_linear(&x, &blocks, None, "Q8_0", true).is_ok());
    assert!(blocks_linear(&x, &blocks, Some(&floats(&[2])), "Q8_0", true).is_err());
    assert!(blocks_linear(&floats(&[2, 32]), &blocks, None, "Q8_0", true).is_err());
    assert!(blocks_linear(&x, &blocks, None, "Q4_1", true).is_err());
    assert!(dequantize_blocks(&blocks, "Q9", DType::F32).is_err());
}

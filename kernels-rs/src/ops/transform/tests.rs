use super::*;
use crate::ops::samples::{Rng, floats, view_of};
use std::f64::consts::TAU;

/// By the formula.
fn plain(re: &[f64], im: &[f64], inverse: bool) -> (Vec<f64>, Vec<f64>) {
    let n = re.len();
    let at = |k: usize| {
        let parts = (0..n).map(|j| {
            let angle = TAU * (j * k % n) as f64 / n as f64 * if inverse { 1.0 } else { -1.0 };
            (re[j] * angle.cos() - im[j] * angle.sin(), re[j] * angle.sin() + im[j] * angle.cos())
        });
        parts.fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1))
    };
    (0..n).map(at).unzip()
}

#[test]
fn lines_of_any_length_and_layout_are_transformed_as_the_formula_says() {
    let mut rng = Rng::new(3);
    for round in 0..150 {
        let dtype = if round % 2 == 0 { DType::F32 } else { DType::F64 };
        let n = if round % 3 == 0 {
            rng.pick(&[64, 75, 96, 100, 125, 180, 256, 320, 400, 500, 512, 640, 1024])
        } else {
            1 + rng.below(40)
        };
        let lines = rng.pick(&[0, 1, 2, 3, 17, 40]);
        let axis = rng.below(2);
        let shape = if axis == 1 { [lines, n] } else { [n, lines] };
        let (re, im) = (view_of(&mut rng, dtype, &shape, false), view_of(&mut rng, dtype, &shape, false));
        let (inverse, kind) = (rng.below(2) == 0, rng.below(3));
        let settings = Settings { axis, inverse, half: kind == 2 };
        let found = dft(&re, (kind == 0).then_some(&im), settings).unwrap();
        let out = if kind == 2 { n / 2 + 1 } else { n };
        assert_eq!(found.0.shape()[axis], out);
        let line = |x: &Array, at: usize, n: usize| -> Vec<f64> {
            let x = floats(x);
            (0..n).map(|j| if axis == 1 { x[at * n + j] } else { x[j * lines + at] }).collect()
        };
        for at in 0..lines {
            let imag = if kind == 0 { line(&im, at, n) } else { vec![0.0; n] };
            let size: f64 = line(&re, at, n).iter().chain(&imag).map(|x| x.abs()).sum();
            let wanted = plain(&line(&re, at, n), &imag, inverse);
            for (found, wanted) in [(&found.0, wanted.0), (&found.1, wanted.1)] {
                let scale = size + 1.0;
                let tolerance = scale * if dtype == DType::F64 { 1e-14 } else { 1e-6 };
                for (a, b) in line(found, at, out).iter().zip(wanted) {
                    assert!((a - b).abs() <= tolerance, "{a} for {b}: n {n}, kind {kind}, inverse {inverse}");
                }
            }
        }
    }
}

#[test]
fn real_lines_come_back_from_half_of_their_transforms() {
    let mut rng = Rng::new(4);
    for round in 0..150 {
        let dtype = if round % 2 == 0 { DType::F32 } else { DType::F64 };
        let n = if round % 3 == 0 { rng.pick(&[64, 75, 96, 128, 256, 320, 512, 1000]) } else { 1 + rng.below(70) };
        let (lines, axis, known) = (rng.pick(&[0, 1, 3, 17]), rng.below(2), n / 2 + 1);
        let shape = if axis == 1 { [lines, known] } else { [known, lines] };
        let (re, im) = (view_of(&mut rng, dtype, &shape, false), view_of(&mut rng, dtype, &shape, false));
        let found = floats(&irdft(&re, &im, axis, n).unwrap());
        let (re, im) = (floats(&re), floats(&im));
        let place = |at: usize, k: usize, n: usize| if axis == 1 { at * n + k } else { k * lines + at };
        for at in 0..lines {
            let whole = |part: &[f64], sign: f64| -> Vec<f64> {
                let value = |k: usize| part[place(at, k, known)];
                (0..n).map(|k| if k < known { value(k) } else { value(n - k) * sign }).collect()
            };
            let (re, mut im) = (whole(&re, 1.0), whole(&im, -1.0));
            im[0] = 0.0;
            if n % 2 == 0 {
                im[n / 2] = 0.0;
            }
            let size: f64 = 1.0 + re.iter().chain(&im).map(|x| x.abs()).sum::<f64>();
            let tolerance = size * if dtype == DType::F64 { 1e-14 } else { 1e-6 };
            for (j, wanted) in plain(&re, &im, true).0.into_iter().enumerate() {
                let found = found[place(at, j, n)];
                assert!((found - wanted).abs() <= tolerance, "{found} for {wanted}: n {n}, axis {axis}");
            }
        }
    }
}

#[test]
fn nothing_gives_nothing_and_wrong_parts_are_refused() {
    let zeros = |shape: &[usize]| Array::zeros(DType::F32, shape).unwrap();
    let settings = Settings { axis: 1, inverse: false, half: false };
    assert_eq!(dft(&zeros(&[0, 3]), None, settings).unwrap().0.shape()[..], [0, 3]);
    assert_eq!(dft(&zeros(&[3, 0]), None, settings).unwrap().1.shape()[..], [3, 0]);
    assert!(dft(&zeros(&[2, 3]), Some(&zeros(&[3, 3])), settings).is_err());
    assert!(dft(&zeros(&[2]), None, settings).is_err());
    assert!(irdft(&zeros(&[2, 3]), &zeros(&[2, 3]), 1, 6).is_err());
    assert!(irdft(&zeros(&[2, 3]), &zeros(&[3, 3]), 1, 5).is_err());
}

#[test]
fn lines_of_every_way_are_transformed() {
    use line::{From, Line};
    for n in (1..40).chain([49, 97, 128, 210, 343, 1009]) {
        let part = |by: usize| (0..n).map(|j| (j * by % 11) as f64 - 5.0).collect::<Vec<f64>>();
        let (re, im) = (part(7), part(3));
        let wanted = plain(&re, &im, false);
        let pairs: Vec<f64> = re.iter().zip(&im).flat_map(|(&re, &im)| [re, im]).collect();
        let ways = [Some(Line::new(n)), Columns::new(n).map(Line::Columns), Some(Line::Chirp(line::Chirp::new(n)))];
        for line in ways.iter().flatten() {
            for from in [From::Parts(&re, &im), From::Pairs(&pairs)] {
                let (mut found, mut room) = ([vec![0.0; n], vec![0.0; n]], vec![0.0; line.room()]);
                line.run(from, found.each_mut().map(|part| &mut part[..]), &mut room);
                for (found, wanted) in found.iter().flatten().zip(wanted.0.iter().chain(&wanted.1)) {
                    assert!((found - wanted).abs() <= 1e-12 * n as f64, "{found} for {wanted} of {n}");
                }
            }
        }
    }
}

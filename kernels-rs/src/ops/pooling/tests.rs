use super::*;
use crate::array::number::Ordered;
use crate::machine::threads::set_num_threads;
use crate::ops::elementwise::convert::cast;
use crate::ops::samples::placed;

struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }

    /// Few different values, so that there are ties, and now and then a NaN.
    fn array<T: Element>(&mut self, shape: &[usize], nan: bool) -> Array {
        let mut value = || if nan && self.next(30) == 0 { f64::NAN } else { self.next(9) as f64 - 4.0 };
        let values: Vec<T> = (0..shape.iter().product()).map(|_| T::from_f64(value())).collect();
        Array::from_slice(&values, shape).unwrap()
    }

    fn settings(&mut self) -> Settings {
        let kernel = (1 + self.next(4), 1 + self.next(4));
        let stride = if self.next(3) == 0 { kernel } else { (1 + self.next(3), 1 + self.next(3)) };
        let mut pad = |k: usize| (self.next(k / 2 + 1), self.next(k / 2 + 1));
        let padding = (pad(kernel.0), pad(kernel.1));
        let dilation = (1 + self.next(2), 1 + self.next(2));
        Settings { kernel, stride, padding, dilation, ceil_mode: self.next(2) == 0 }
    }

    fn shape(&mut self, settings: &Settings) -> [usize; 4] {
        let mut size = |k: usize, d: usize, extra: usize| d * (k - 1) + 1 + self.next(extra);
        let rows = size(settings.kernel.0, settings.dilation.0, 9);
        let cols = size(settings.kernel.1, settings.dilation.1, 40);
        [1 + self.next(3), 1 + self.next(4), rows, cols]
    }
}

fn values<T: Element>(x: &Array) -> Vec<f64> {
    x.to_vec::<T>().unwrap().into_iter().map(Element::to_f64).collect()
}

/// Plane positions of every window, in row-major order, and the number of elements with padding counted.
fn windows(shape: [usize; 4], settings: &Settings) -> (Vec<Vec<usize>>, Vec<usize>) {
    let Settings { kernel, stride, padding, dilation, ceil_mode } = *settings;
    let count = |n: usize, k: usize, s: usize, p: Pair, d: usize| {
        let room = n + p.0 + p.1 - d * (k - 1) - 1;
        let more = ceil_mode && !room.is_multiple_of(s) && (room / s + 1) * s < n + p.0;
        room / s + 1 + usize::from(more)
    };
    let rows = count(shape[2], kernel.0, stride.0, padding.0, dilation.0);
    let cols = count(shape[3], kernel.1, stride.1, padding.1, dilation.1);
    let (mut places, mut sizes) = (vec![], vec![]);
    for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
        let (mut inside, mut size) = (vec![], 0);
        for (k, l) in (0..kernel.0).flat_map(|k| (0..kernel.1).map(move |l| (k, l))) {
            let (row, col) = (i * stride.0 + k * dilation.0, j * stride.1 + l * dilation.1);
            let padded = (shape[2] + padding.0.0 + padding.0.1, shape[3] + padding.1.0 + padding.1.1);
            size += usize::from(row < padded.0 && col < padded.1);
            let (row, col) = (row.wrapping_sub(padding.0.0), col.wrapping_sub(padding.1.0));
            if row < shape[2] && col < shape[3] {
                inside.push(row * shape[3] + col);
            }
        }
        places.push(inside);
        sizes.push(size);
    }
    (places, sizes)
}

fn check_max<T: Ordered>(random: &mut Random, nan: bool) {
    let settings = random.settings();
    let shape = random.shape(&settings);
    let x = random.array::<T>(&shape, nan);
    let data = values::<T>(&x);
    let (places, _) = windows(shape, &settings);
    let (mut expected, mut expected_places) = (vec![], vec![]);
    for plane in data.chunks_exact(shape[2] * shape[3]) {
        for window in &places {
            let wins = |best: usize, at: usize| plane[at] > plane[best] || plane[at].is_nan() && !plane[best].is_nan();
            let best = window.iter().copied().reduce(|best, at| if wins(best, at) { at } else { best });
            expected.push(best.map_or(T::LOWEST.to_f64(), |best| plane[best]));
            expected_places.push(best.map_or(-1, |best| best as i64));
        }
    }
    let what = format!("{} {shape:?} {settings:?}", T::DTYPE.name());
    let same =
        |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || a.is_nan() && b.is_nan());
    let x = placed(&x, random.next(4));
    let (got, got_places) = max_pool2d_with_indices(&x, &settings).unwrap();
    assert!(same(&values::<T>(&got), &expected), "{what}");
    assert_eq!(got_places.to_vec::<i64>().unwrap(), expected_places, "{what}");
    assert!(same(&values::<T>(&max_pool2d(&x, &settings).unwrap()), &expected), "{what}");
}

#[test]
fn maxima_agree_with_the_definition() {
    let mut random = Random(1);
    for round in 0..200 {
        set_num_threads(1 + round % 4);
        check_max::<f32>(&mut random, true);
        check_max::<f64>(&mut random, true);
        check_max::<F16>(&mut random, true);
        check_max::<BF16>(&mut random, true);
        check_max::<i32>(&mut random, false);
        check_max::<i16>(&mut random, false);
        check_max::<i8>(&mut random, false);
        check_max::<u32>(&mut random, false);
    }
}

#[test]
fn squares_of_two_over_many_planes() {
    let mut random = Random(2);
    let settings =
        Settings { kernel: (2, 2), stride: (2, 2), padding: ((0, 0), (0, 0)), dilation: (1, 1), ceil_mode: false };
    for shape in [[5, 7, 28, 28], [1, 1, 300, 401], [2, 3, 5, 2]] {
        let x = random.array::<f32>(&shape, true);
        let (places, _) = windows(shape, &settings);
        let (got, got_places) = max_pool2d_with_indices(&x, &settings).unwrap();
        let (got, got_places) = (got.to_vec::<f32>().unwrap(), got_places.to_vec::<i64>().unwrap());
        assert_eq!(max_pool2d(&x, &settings).unwrap().to_vec::<f32>().unwrap().map_bits(), got.map_bits());
        for (plane, data) in values::<f32>(&x).chunks_exact(shape[2] * shape[3]).enumerate() {
            for (i, window) in places.iter().enumerate() {
                let at = plane * places.len() + i;
                let place = got_places[at] as usize;
                let nan = window.iter().position(|&p| data[p].is_nan());
                let best = window.iter().position(|&p| window.iter().all(|&q| data[p] >= data[q]));
                assert_eq!(window[nan.or(best).unwrap()], place);
                assert!(f64::from(got[at]) == data[place] || nan.is_some() && got[at].is_nan());
            }
        }
    }
}

trait Bits {
    fn map_bits(&self) -> Vec<u32>;
}

impl Bits for Vec<f32> {
    fn map_bits(&self) -> Vec<u32> {
        self.iter().map(|x| x.to_bits()).collect()
    }
}

#[test]
fn the_gradient_of_a_maximum_goes_to_its_place() {
    let mut random = Random(3);
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let settings = random.settings();
        let shape = random.shape(&settings);
        let x = random.array::<f32>(&shape, false);
        let (y, places) = max_pool2d_with_indices(&x, &settings).unwrap();
        let g = random.array::<f32>(y.shape(), false);
        let plane = shape[2] * shape[3];
        let mut expected = vec![0.0; x.numel()];
        let per_plane = y.numel() / (shape[0] * shape[1]);
        for (i, (&g, &place)) in values::<f32>(&g).iter().zip(&places.to_vec::<i64>().unwrap()).enumerate() {
            expected[i / per_plane * plane + place.rem_euclid(plane as i64) as usize] += g;
        }
        let (g, places) = (placed(&g, random.next(4)), placed(&places, random.next(4)));
        let got = max_pool2d_backward(&g, &places, &shape).unwrap();
        assert_eq!(values::<f32>(&got), expected);
        let narrow = max_pool2d_backward(&cast(&g, DType::BF16).unwrap(), &cast(&places, DType::I32).unwrap(), &shape);
        assert_eq!(values::<BF16>(&narrow.unwrap()), expected);
    }
    let g = Array::zeros(DType::F32, &[1, 1, 1, 2]).unwrap();
    let bad = Array::from_slice(&[0i64, 9], &[1, 1, 1, 2]).unwrap();
    assert!(matches!(max_pool2d_backward(&g, &bad, &[1, 1, 3, 3]), Err(Error::IndexOutOfRange(_))));
}

fn check_mean<T: Element>(random: &mut Random, epsilon: f64) {
    let settings = Settings { dilation: (1, 1), ..random.settings() };
    let shape = random.shape(&settings);
    let x = random.array::<T>(&shape, false);
    let (places, sizes) = windows(shape, &settings);
    let plane = shape[2] * shape[3];
    for include_pad in [false, true] {
        let g = random.array::<T>(&Pool::new("test", &shape, &settings).unwrap().shape(), false);
        let gs = values::<T>(&g);
        let (x, g) = (placed(&x, random.next(4)), placed(&g, random.next(4)));
        let (mut expected, mut expected_dx) = (vec![], vec![0.0; x.numel()]);
        for (p, data) in values::<T>(&x).chunks_exact(plane).enumerate() {
            for (window, &size) in places.iter().zip(&sizes) {
                let count = if include_pad { size } else { window.len() } as f64;
                let share = gs[expected.len()] / count;
                for &at in window {
                    expected_dx[p * plane + at] += share;
                }
                expected.push(window.iter().map(|&at| data[at]).sum::<f64>() / count);
            }
        }
        let what = format!("{} {shape:?} {settings:?} {include_pad}", T::DTYPE.name());
        let close = |a: &[f64], b: &[f64]| {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= epsilon * (1.0 + b.abs()) || a.is_nan() && b.is_nan())
        };
        assert!(close(&values::<T>(&avg_pool2d(&x, &settings, include_pad).unwrap()), &expected), "{what}");
        let dx = avg_pool2d_backward(&g, &shape, &settings, include_pad).unwrap();
        assert!(close(&values::<T>(&dx), &expected_dx), "backward {what}");
    }
}

#[test]
fn means_agree_with_the_definition() {
    let mut random = Random(4);
    for round in 0..100 {
        set_num_threads(1 + round % 4);
        check_mean::<f32>(&mut random, 1e-5);
        check_mean::<f64>(&mut random, 1e-13);
        check_mean::<F16>(&mut random, 4e-3);
        check_mean::<BF16>(&mut random, 3e-2);
    }
}

#[test]
fn empty_and_invalid() {
    let settings =
        Settings { kernel: (2, 2), stride: (2, 2), padding: ((0, 0), (0, 0)), dilation: (1, 1), ceil_mode: false };
    let none = Array::zeros(DType::F32, &[0, 3, 4, 4]).unwrap();
    assert_eq!(max_pool2d(&none, &settings).unwrap().shape()[..], [0, 3, 2, 2]);
    assert_eq!(
        avg_pool2d_backward(&Array::zeros(DType::F32, &[0, 3, 2, 2]).unwrap(), &[0, 3, 4, 4], &settings, true)
            .unwrap()
            .numel(),
        0
    );
    for shape in [&[1, 1, 1, 4][..], &[4, 4]] {
        assert!(max_pool2d(&Array::zeros(DType::F32, shape).unwrap(), &settings).is_err());
    }
    assert!(max_pool2d(&Array::zeros(DType::Bool, &[1, 1, 4, 4]).unwrap(), &settings).is_err());
}

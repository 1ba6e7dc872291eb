use super::*;
use crate::array::view;
use crate::dtype::Element;
use crate::machine::threads::set_num_threads;

pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }

    pub fn dense<T: Element>(&mut self, shape: &[usize]) -> Array {
        let value = |_| T::from_f64((self.next(201) as f64 - 100.0) / if T::DTYPE.is_float() { 64.0 } else { 1.0 });
        Array::from_slice(&(0..shape.iter().product()).map(value).collect::<Vec<T>>(), shape).unwrap()
    }

    /// A random array of this shape in a random layout: dense, transposed, every second element, or reversed.
    fn array<T: Element>(&mut self, shape: &[usize]) -> Array {
        let rank = shape.len();
        let layout = shape.iter().sum::<usize>() % 4;
        if layout == 1 && rank > 1 {
            let mut swapped = shape.to_vec();
            swapped.swap(rank - 1, rank - 2);
            let mut axes: Vec<usize> = (0..rank).collect();
            axes.swap(rank - 1, rank - 2);
            return view::permute_dims(&self.dense::<T>(&swapped), &axes).unwrap();
        }
        if layout == 2 && shape[rank - 1] > 0 {
            let mut wide = shape.to_vec();
            wide[rank - 1] = 2 * shape[rank - 1];
            let mut step = vec![1; rank];
            step[rank - 1] = 2;
            return view::slice(&self.dense::<T>(&wide), &vec![0; rank], shape, &step).unwrap();
        }
        let plain = self.dense::<T>(shape);
        if layout == 3 { view::flip(&plain, &[0]).unwrap() } else { plain }
    }
}

/// The operand with a batch of this shape, row-major.
fn stretched<T: Element>(x: &Array, batch: &[usize], vector: [usize; 2]) -> Vec<f64> {
    let rank = x.rank();
    let tail = if rank == 1 { vector } else { [x.shape()[rank - 2], x.shape()[rank - 1]] };
    let mut shape = x.shape()[..rank.saturating_sub(2)].to_vec();
    shape.extend(tail);
    let x = view::broadcast_to(&view::reshape(x, &shape).unwrap(), &[batch, &tail].concat()).unwrap();
    x.to_vec::<T>().unwrap().into_iter().map(Element::to_f64).collect()
}

/// The definition in `f64`.
pub(super) fn reference<T: Element>(x1: &Array, x2: &Array) -> Vec<f64> {
    let batch = shape::broadcast(&x1.shape()[..x1.rank().max(2) - 2], &x2.shape()[..x2.rank().max(2) - 2]).unwrap();
    let k = x1.shape()[x1.rank() - 1];
    let m = if x1.rank() == 1 { 1 } else { x1.shape()[x1.rank() - 2] };
    let n = if x2.rank() == 1 { 1 } else { x2.shape()[x2.rank() - 1] };
    let (a, b) = (stretched::<T>(x1, &batch, [1, k]), stretched::<T>(x2, &batch, [k, 1]));
    if k == 0 {
        return vec![0.0; shape::numel(&batch) * m * n];
    }
    let mut out = vec![];
    for (a, b) in a.chunks_exact(m * k).zip(b.chunks_exact(k * n)) {
        for i in 0..m {
            out.extend((0..n).map(|j| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum::<f64>()));
        }
    }
    out
}

/// `NumPy`'s rule.
fn result_shape(a: &[usize], b: &[usize]) -> Vec<usize> {
    let (rows, cols) = (a.len().max(2) - 2, b.len().max(2) - 2);
    let mut out = shape::broadcast(&a[..rows], &b[..cols]).unwrap().to_vec();
    out.extend_from_slice(&a[rows..a.len() - 1]);
    out.extend(b.get(b.len().max(2) - 1));
    out
}

fn check<T: Element>(a: &[usize], b: &[usize], random: &mut Random, epsilon: f64) {
    let (x1, x2) = (random.array::<T>(a), random.array::<T>(b));
    compare::<T>(&x1, &x2, epsilon);
}

pub(super) fn compare<T: Element>(x1: &Array, x2: &Array, epsilon: f64) {
    let (a, b) = (&x1.shape()[..], &x2.shape()[..]);
    let got = matmul(x1, x2).unwrap();
    assert_eq!(got.shape()[..], result_shape(a, b)[..], "{a:?} {b:?}");
    let expected = reference::<T>(x1, x2);
    let got: Vec<f64> = got.to_vec::<T>().unwrap().into_iter().map(Element::to_f64).collect();
    assert_eq!(got.len(), expected.len());
    let k = a[a.len() - 1] as f64;
    for (i, (&x, &y)) in got.iter().zip(&expected).enumerate() {
        let y = if T::DTYPE.is_float() { y } else { T::from_i64(y as i64).to_f64() };
        assert!((x - y).abs() <= epsilon * (4.0 * k.sqrt() + y.abs()), "{} {a:?} {b:?} {i}: {x} {y}", T::DTYPE.name());
    }
}

fn check_all(a: &[usize], b: &[usize], random: &mut Random) {
    check::<f32>(a, b, random, 1e-6);
    check::<f64>(a, b, random, 1e-14);
    check::<F16>(a, b, random, 2e-3);
    check::<BF16>(a, b, random, 1.6e-2);
    check::<i64>(a, b, random, 0.0);
    check::<i8>(a, b, random, 0.0);
    check::<u16>(a, b, random, 0.0);
}

#[test]
fn thin_products_of_every_layout() {
    let mut random = Random(11);
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let (few, deep, wide) = (1 + random.next(7), 1 + random.next(20), 600 + random.next(300));
        check_all(&[wide, deep], &[deep, few], &mut random);
        check_all(&[1, wide], &[wide, few], &mut random);
        check_all(&[wide], &[wide, few], &mut random);
    }
}

#[test]
fn random_sizes_and_layouts() {
    let mut random = Random(7);
    for round in 0..150 {
        set_num_threads(1 + round % 4);
        let (m, k, n) = (1 + random.next(40), 1 + random.next(40), 1 + random.next(40));
        check_all(&[m, k], &[k, n], &mut random);
        check_all(&[k], &[k, n], &mut random);
        check_all(&[m, k], &[k], &mut random);
        check_all(&[k], &[k], &mut random);
        let (p, q) = (1 + random.next(3), 1 + random.next(3));
        check_all(&[p, q, m, k], &[k, n], &mut random);
        check_all(&[p, q, m, k], &[p, 1, k, n], &mut random);
        check_all(&[q, m, k], &[p, q, k, n], &mut random);
    }
}

#[test]
fn large_products_are_cut_into_tiles() {
    let mut random = Random(8);
    for (m, k, n) in [(300, 257, 190), (64, 784, 256), (1, 1030, 1100), (1100, 1030, 1), (3, 5000, 70), (130, 3, 4099)]
    {
        check::<f32>(&[m, k], &[k, n], &mut random, 1e-6);
        check::<BF16>(&[m, k], &[k, n], &mut random, 1.6e-2);
    }
}

#[test]
fn long_dot_products_are_added_piece_by_piece_whatever_the_threads() {
    let mut random = Random(15);
    for k in [16_383, 16_384, 16_385, 131_089] {
        macro_rules! each {
            ($($rust:ty, $epsilon:expr;)*) => {$(
                let (x, w) = (random.dense::<$rust>(&[1, k]), random.dense::<$rust>(&[k, 1]));
                let all = [1, 3].map(|threads| {
                    set_num_threads(threads);
                    compare::<$rust>(&x, &w, $epsilon);
                    bits::<$rust>(&matmul(&x, &w).unwrap())
                });
                assert_eq!(all[0], all[1]);
            )*};
        }
        each! { f32, 1e-6; f64, 1e-14; BF16, 1.6e-2; }
    }
}

#[test]
fn each_way_for_few_rows_or_columns() {
    let mut random = Random(14);
    for (round, (m, k, n)) in [
        (1, 64, 200),
        (2, 600, 64),
        (3, 34, 33),
        (7, 300, 130),
        (8, 130, 70),
        (9, 514, 40),
        (12, 520, 66),
        (13, 512, 96),
        (20, 256, 48),
        (32, 40, 97),
        (33, 40, 97),
        (600, 8, 20),
        (150, 530, 8),
        (90, 512, 12),
        (70, 600, 13),
        (40, 64, 10),
        (16, 16, 16),
        (7, 1, 16),
        (32, 32, 32),
        (10, 128, 32),
        (17, 5, 64),
        (1200, 6, 10),
    ]
    .into_iter()
    .enumerate()
    {
        set_num_threads(1 + round % 4);
        let (turned, batch) = (random.next(2) == 1, 1 + random.next(2));
        macro_rules! each {
            ($($rust:ty, $epsilon:expr;)*) => {$(
                check::<$rust>(&[m, k], &[k, n], &mut random, $epsilon);
                check::<$rust>(&[batch, m, k], &[batch, k, n], &mut random, $epsilon);
                let (x, w) = (random.dense::<$rust>(&[m, k]), random.dense::<$rust>(&[if turned { n } else { k }, if turned { k } else { n }]));
                let w = if turned { view::permute_dims(&w, &[1, 0]).unwrap() } else { w };
                compare::<$rust>(&x, &w, $epsilon);
            )*};
        }
        each! { f32, 1e-6; f64, 1e-14; F16, 2e-3; BF16, 1.6e-2; }
    }
}

pub(super) fn bits<T: Element>(x: &Array) -> Vec<u64> {
    x.to_vec::<T>().unwrap().into_iter().map(|x| x.to_f64().to_bits()).collect()
}

/// A matrix in a storage of its own, stored by rows or by columns.
pub(super) fn owned<T: Element>(values: &Array, turned: bool) -> Array {
    let dense = |x: &Array| Array::from_slice(&x.to_vec::<T>().unwrap(), x.shape()).unwrap();
    let swap = |x: &Array| view::permute_dims(x, &[1, 0]).unwrap();
    if turned { swap(&dense(&swap(values))) } else { dense(values) }
}

fn check_kept<T: Element>((m, k, n): (usize, usize, usize), turned: bool, kept: bool, random: &mut Random) {
    let (x, values) = (random.dense::<T>(&[m, k]), random.dense::<T>(&[k, n]));
    let fresh = bits::<T>(&matmul(&x, &owned::<T>(&values, turned)).unwrap());
    let w = owned::<T>(&values, turned);
    for time in 1..5 {
        set_num_threads(time);
        assert!(bits::<T>(&matmul(&x, &w).unwrap()) == fresh, "{} {m} {k} {n} use {time}", T::DTYPE.name());
        let expected = usize::from(kept && time > 1);
        assert_eq!(w.storage().packed().count(), expected, "{} {m} {k} {n} use {time}", T::DTYPE.name());
    }
    // Other rows with the same packed weights, and other uses of the same storage.
    let all = view::slice(&x, &[m / 2, 0], &[m - m / 2, k], &[1, 1]).unwrap();
    assert!(bits::<T>(&matmul(&all, &w).unwrap()) == bits::<T>(&matmul(&all, &owned::<T>(&values, turned)).unwrap()));
}

#[test]
fn kept_weights_change_no_bit() {
    let mut random = Random(15);
    for size in [(70, 128, 96), (130, 515, 70), (90, 1025, 33)] {
        for turned in [false, true] {
            check_kept::<f32>(size, turned, turned || size.2 < size.0, &mut random);
            check_kept::<f64>(size, turned, turned || size.2 < size.0, &mut random);
            let packs =
                pairs::Pairs::supported() || crate::machine::simd::has_amx() || crate::machine::lanes::is_baseline();
            check_kept::<BF16>(size, turned, turned || size.2 < size.0 || packs, &mut random);
        }
        check_kept::<F16>(size, true, true, &mut random);
    }
    // Few rows: read where they lie at first, in the blocks of the panels that are kept later.
    for size in [(1, 700, 200), (20, 1100, 130)] {
        check_kept::<f32>(size, false, blocks::wide(), &mut random);
        check_kept::<f64>(size, false, blocks::wide(), &mut random);
    }
}

#[test]
fn a_stale_pack_is_never_used() {
    let mut random = Random(16);
    let x = random.dense::<f32>(&[40, 200]);
    let right = |w: &Array| view::permute_dims(w, &[1, 0]).unwrap();
    let mut w = random.dense::<f32>(&[100, 200]);
    for round in 0..6 {
        // Written by its only holder, as a step in place would.
        w.as_mut_slice::<f32>()[round] += 1.0;
        for _ in 0..3 {
            compare::<f32>(&x, &right(&w), 1e-6);
        }
        assert_eq!(w.storage().packed().count(), 1);
    }
    // The allocator gives the same memory to other weights.
    for _ in 0..6 {
        w = random.dense::<f32>(&[100, 200]);
        for _ in 0..3 {
            compare::<f32>(&x, &right(&w), 1e-6);
        }
    }
    // Parts of one storage, in several layouts.
    let whole = random.dense::<f32>(&[210, 200]);
    for _ in 0..3 {
        for first in [0, 1, 100] {
            let part = view::slice(&whole, &[first, 0], &[100, 200], &[1, 1]).unwrap();
            compare::<f32>(&x, &right(&part), 1e-6);
            let fewer = view::slice(&part, &[0, 0], &[90, 200], &[1, 1]).unwrap();
            compare::<f32>(&x, &right(&fewer), 1e-6);
            let part = view::slice(&whole, &[first, 0], &[100, 200], &[1, -1]).unwrap_or(part);
            compare::<f32>(&x, &right(&part), 1e-6);
        }
    }
}

#[test]
fn threads_share_kept_weights() {
    let mut random = Random(17);
    let (x, w) = (random.dense::<BF16>(&[64, 300]), random.dense::<BF16>(&[128, 300]));
    let w = view::permute_dims(&w, &[1, 0]).unwrap();
    let expected = bits::<BF16>(&matmul(&x, &owned::<BF16>(&w, true)).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| assert!(bits::<BF16>(&matmul(&x, &w).unwrap()) == expected)));
        }
    });
    assert_eq!(w.storage().packed().count(), 1);
}

#[test]
fn a_right_side_stored_by_columns_is_turned_in_blocks() {
    let mut random = Random(11);
    for (m, k, n) in [(2, 8, 8), (3, 5000, 70), (40, 33, 49), (64, 256, 300), (16, 4097, 33)] {
        let (x, stored) = (random.array::<f32>(&[m, k]), random.array::<f32>(&[n, k]).contiguous().unwrap());
        let w = view::permute_dims(&stored, &[1, 0]).unwrap();
        let bias = random.array::<f32>(&[n]);
        let b = bias.to_vec::<f32>().unwrap();
        let got = linear(&x, &w, Some(&bias)).unwrap().to_vec::<f32>().unwrap();
        for (i, (got, expected)) in got.iter().zip(reference::<f32>(&x, &w)).enumerate() {
            let expected = expected + f64::from(b[i % n]);
            assert!(
                (f64::from(*got) - expected).abs() < 1e-6 * (10.0 * (k as f64).sqrt() + expected.abs()),
                "{m} {k} {n} {i}"
            );
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let mut random = Random(9);
    for (m, k, n) in [
        (300, 257, 190),
        (300, 1100, 200),
        (64, 784, 256),
        (70, 530, 1030),
        (1, 1030, 1100),
        (2, 9000, 40),
        (8, 1024, 700),
        (900, 600, 8),
        (3000, 40, 12),
    ] {
        macro_rules! each {
            ($($rust:ty)*) => {$(
                let (a, b) = (random.array::<$rust>(&[m, k]), random.array::<$rust>(&[k, n]));
                let product = |threads| {
                    set_num_threads(threads);
                    bits::<$rust>(&matmul(&a, &b).unwrap())
                };
                let one = product(1);
                assert!([2, 3, 4, 16, 64].into_iter().all(|threads| product(threads) == one), "{m} {k} {n}");
            )*};
        }
        each! { f32 f64 F16 BF16 }
    }
}

#[test]
fn linear_adds_the_bias_to_matmul() {
    let mut random = Random(10);
    for shape in [&[5][..], &[7, 5], &[2, 3, 5], &[90, 200], &[0, 5], &[4, 0]] {
        let inputs = shape[shape.len() - 1];
        let (x, w, b) = (random.array::<f32>(shape), random.array::<f32>(&[inputs, 130]), random.array::<f32>(&[130]));
        let plain = matmul(&x, &w).unwrap();
        let got = linear(&x, &w, Some(&b)).unwrap();
        assert_eq!(got.shape(), plain.shape());
        let bias = b.to_vec::<f32>().unwrap();
        for (i, (got, plain)) in got.to_vec::<f32>().unwrap().iter().zip(plain.to_vec::<f32>().unwrap()).enumerate() {
            assert!((got - plain - bias[i % 130]).abs() < 1e-4, "{shape:?} {i}");
        }
        assert_eq!(linear(&x, &w, None).unwrap().to_vec::<f32>().unwrap(), plain.to_vec::<f32>().unwrap());
    }
}

/// `activation(scale * x @ w + bias + residual)` in `f64`.
fn fused_reference<T: Element>(x: &Array, w: &Array, end: &End<'_>) -> Vec<f64> {
    let n = w.shape()[1];
    let values = |x: &Array| x.to_vec::<T>().unwrap().into_iter().map(Element::to_f64).collect::<Vec<_>>();
    let (bias, residual) = (end.bias.map(values), end.residual.map(values));
    let finish = |(i, product): (usize, f64)| {
        let sum = end.scale * product
            + bias.as_ref().map_or(0.0, |bias| bias[i % n])
            + residual.as_ref().map_or(0.0, |residual| residual[i]);
        match end.activation {
            Activation::None => sum,
            Activation::Relu => sum.max(0.0),
            Activation::Gelu => crate::math::special::double::gelu(sum),
        }
    };
    reference::<T>(x, w).into_iter().enumerate().map(finish).collect()
}

fn check_fused<T: Element>((m, k, n): (usize, usize, usize), random: &mut Random, epsilon: f64) {
    let (batch, lead) = (1 + random.next(3), random.next(2) == 1);
    let (x_shape, out_shape) = if lead { (vec![batch, m, k], vec![batch, m, n]) } else { (vec![m, k], vec![m, n]) };
    let (x, w) = (random.array::<T>(&x_shape), random.array::<T>(&[k, n]));
    let (bias, residual) = (random.array::<T>(&[n]), random.array::<T>(&out_shape));
    let end = End {
        bias: (random.next(3) > 0).then_some(&bias),
        residual: (random.next(2) > 0).then_some(&residual),
        activation: [Activation::None, Activation::Relu, Activation::Gelu][random.next(3)],
        scale: [1.0, 0.5, -1.25][random.next(3)],
    };
    let got = fused_linear(&x, &w, &end).unwrap();
    assert_eq!(got.shape()[..], out_shape[..]);
    let got: Vec<f64> = got.to_vec::<T>().unwrap().into_iter().map(Element::to_f64).collect();
    for (i, (&got, expected)) in got.iter().zip(fused_reference::<T>(&x, &w, &end)).enumerate() {
        let bound = epsilon * (4.0 * (k as f64).sqrt() + 4.0 + expected.abs());
        assert!((got - expected).abs() <= bound, "{} {m} {k} {n} {i}: {got} {expected}", T::DTYPE.name());
    }
}

#[test]
fn fused_linear_is_the_formula() {
    let mut random = Random(12);
    for round in 0..120 {
        set_num_threads(1 + round % 4);
        let size = (1 + random.next(90), random.next(70), 1 + random.next(90));
        check_fused::<f32>(size, &mut random, 1e-6);
        check_fused::<f64>(size, &mut random, 1e-14);
        check_fused::<F16>(size, &mut random, 2e-3);
        check_fused::<BF16>(size, &mut random, 1.6e-2);
    }
    for size in [(300, 900, 190), (1, 1030, 1100), (5, 700, 600), (1100, 1030, 3)] {
        check_fused::<f32>(size, &mut random, 1e-6);
        check_fused::<BF16>(size, &mut random, 1.6e-2);
    }
}

/// Every way through the engine, in every layout of both sides, at odd starts.
#[test]
fn all_layouts_and_alignments() {
    let mut random = Random(13);
    for (m, k, n) in [(1, 300, 333), (3, 65, 700), (7, 33, 40), (9, 129, 65), (60, 100, 90), (80, 500, 70), (90, 41, 7)]
    {
        for layouts in 0..4 {
            set_num_threads(1 + (m + layouts) % 4);
            let view_of =
                |random: &mut Random, rows: usize, cols: usize, turned: bool, f: fn(&mut Random, &[usize]) -> Array| {
                    let (high, wide) = if turned { (cols, rows) } else { (rows, cols) };
                    let whole = f(random, &[high + 2, wide + 3]);
                    let part = view::slice(&whole, &[1, 2], &[high, wide], &[1, 1]).unwrap();
                    if turned { view::permute_dims(&part, &[1, 0]).unwrap() } else { part }
                };
            macro_rules! each {
                ($($rust:ty, $epsilon:expr;)*) => {$(
                    let dense: fn(&mut Random, &[usize]) -> Array = |random, shape| random.dense::<$rust>(shape);
                    let (x, w) = (view_of(&mut random, m, k, layouts & 1 == 1, dense), view_of(&mut random, k, n, layouts & 2 == 2, dense));
                    compare::<$rust>(&x, &w, $epsilon);
                )*};
            }
            each! { f32, 1e-6; f64, 1e-14; F16, 2e-3; BF16, 1.6e-2; }
        }
    }
}

#[test]
fn special_values_go_through() {
    let values = |x: &[f32], shape: &[usize]| Array::from_slice(x, shape).unwrap();
    // A NaN and infinities touch their row and column alone: nothing is padded into other sums.
    let mut left = vec![1.0; 70 * 9];
    (left[9], left[2 * 9], left[3 * 9]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
    let right = vec![1.0; 9 * 37];
    let got = matmul(&values(&left, &[70, 9]), &values(&right, &[9, 37])).unwrap().to_vec::<f32>().unwrap();
    for (i, row) in got.chunks_exact(37).enumerate() {
        let right = |x: f32| match i {
            1 => x.is_nan(),
            2 => x == f32::INFINITY,
            3 => x == f32::NEG_INFINITY,
            _ => x == 9.0,
        };
        assert!(row.iter().all(|&x| right(x)), "{i} {row:?}");
    }
    let relu = End { activation: Activation::Relu, ..End::default() };
    let nan = fused_linear(&values(&[f32::NAN], &[1, 1]), &values(&[1.0], &[1, 1]), &relu).unwrap();
    assert!(nan.to_vec::<f32>().unwrap()[0].is_nan());
}

#[test]
fn empty_and_rejected() {
    let array = |shape: &[usize]| Array::zeros(DType::F32, shape).unwrap();
    assert_eq!(matmul(&array(&[2, 0]), &array(&[0, 3])).unwrap().to_vec::<f32>().unwrap(), [0.0; 6]);
    assert_eq!(matmul(&array(&[0, 2]), &array(&[2, 3])).unwrap().shape()[..], [0, 3]);
    assert_eq!(matmul(&array(&[0]), &array(&[0])).unwrap().to_vec::<f32>().unwrap(), [0.0]);
    let ints = Array::zeros(DType::I32, &[2, 0]).unwrap();
    assert_eq!(matmul(&ints, &Array::zeros(DType::I32, &[0, 2]).unwrap()).unwrap().to_vec::<i32>().unwrap(), [0; 4]);
    for (a, b) in [(&[2, 3][..], &[2, 3][..]), (&[], &[3]), (&[2, 2, 3], &[3, 3, 4])] {
        assert!(matches!(matmul(&array(a), &array(b)), Err(Error::Rejected(_))), "{a:?} {b:?}");
    }
    assert!(matches!(matmul(&array(&[2, 2]), &Array::zeros(DType::I32, &[2, 2]).unwrap()), Err(Error::Rejected(_))));
    let flags = Array::zeros(DType::Bool, &[2, 2]).unwrap();
    assert!(matches!(matmul(&flags, &flags), Err(Error::Rejected(_))));
}

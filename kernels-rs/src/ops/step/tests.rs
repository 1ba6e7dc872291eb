use super::*;
use crate::array::view;
use crate::dispatch;
use crate::dtype::{DType, Element, Float};

/// Numbers in [0.1, 1.1), the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        0.1 + (self.0 >> 40) as f64 / (1 << 24) as f64
    }

    /// Arrays of all layouts that a gradient may have.
    fn list<T: Element>(&mut self, shapes: &[Vec<usize>]) -> Vec<Array> {
        let mut out = Vec::new();
        for (k, shape) in shapes.iter().enumerate() {
            let count: usize = shape.iter().product();
            let values: Vec<T> = (0..count).map(|_| T::from_f64(self.next())).collect();
            let dense = Array::from_slice(&values, shape).unwrap();
            out.push(match (k % 3, shape.len()) {
                (1, 2) => {
                    let turned = Array::from_slice(&values, &[shape[1], shape[0]]).unwrap();
                    view::permute_dims(&turned, &[1, 0]).unwrap()
                }
                (2, 1..) if count > 0 => {
                    view::broadcast_to(&Array::from_slice(&values[..1], &vec![1; shape.len()]).unwrap(), shape).unwrap()
                }
                _ => dense,
            });
        }
        out
    }
}

fn shapes() -> Vec<Vec<usize>> {
    vec![vec![40, 513], vec![7, 300], vec![33], vec![], vec![3, 0], vec![5], vec![20_001], vec![65, 65], vec![2]]
}

/// One element after the other, in the order of the formula.
fn adam_reference<W: Wide>(at: [W; 5], s: &Adam) -> [W; 4] {
    let of = W::from_f64;
    let [x, mut g, m, v, top] = at;
    if s.weight_decay != 0.0 && !s.decoupled {
        g = g + x * of(s.weight_decay);
    }
    let time = s.time as i32;
    let m = g * of(1.0 - s.betas.0) + m * of(s.betas.0);
    let v = g * g * of(1.0 - s.betas.1) + v * of(s.betas.1);
    let top = if s.amsgrad && top > v { top } else { v };
    let root = top.sqrt() * of(1.0 / (1.0 - s.betas.1.powi(time)).sqrt());
    let step = m * of(1.0 / (1.0 - s.betas.0.powi(time))) / (root + of(s.epsilon));
    let kept = if s.weight_decay != 0.0 && s.decoupled { x * of(1.0 - s.lr * s.weight_decay) } else { x };
    [kept - step * of(s.lr), m, v, top]
}

fn refs(list: &[Array]) -> Vec<&Array> {
    list.iter().collect()
}

fn check_adam<T: Float<Wide: Wide>>(settings: &Adam, starts: bool) {
    let mut random = Random(7);
    let shapes = shapes();
    let lists: Vec<Vec<Array>> = (0..5).map(|_| random.list::<T>(&shapes)).collect();
    let none = Vec::new();
    let means = |k: usize| refs(if starts || (k == 4 && !settings.amsgrad) { &none } else { &lists[k] });
    let (x, g, m, v, top) = (refs(&lists[0]), refs(&lists[1]), means(2), means(3), means(4));
    let out = adam([&x, &g, &m, &v, &top], settings).unwrap();
    let streams = if settings.amsgrad { 4 } else { 3 };
    assert_eq!(out.len(), streams * shapes.len());
    for k in 0..shapes.len() {
        let values: Vec<Vec<T>> = lists.iter().map(|list| list[k].to_vec().unwrap()).collect();
        let got: Vec<Vec<T>> = (0..streams).map(|s| out[s * shapes.len() + k].to_vec().unwrap()).collect();
        for i in 0..values[0].len() {
            let zero = |s: usize| if starts { T::Wide::ZERO } else { values[s][i].widen() };
            let want =
                adam_reference([values[0][i].widen(), values[1][i].widen(), zero(2), zero(3), zero(4)], settings);
            for s in 0..streams {
                assert!(got[s][i].to_f64() == T::narrow(want[s]).to_f64(), "tensor {k}, element {i}, stream {s}");
            }
        }
    }
}

#[test]
fn adam_has_the_bits_of_the_formula_for_any_layout_and_thread_count() {
    for threads in [1, 2, 3, 4] {
        threads::set_num_threads(threads);
        for (decoupled, amsgrad, time) in [(false, false, 1), (true, false, 2), (false, true, 9), (true, true, 1)] {
            let settings = Adam {
                lr: 0.05,
                time,
                betas: (0.9, 0.999),
                epsilon: 1e-5,
                weight_decay: if time == 2 { 0.0 } else { 0.1 },
                decoupled,
                amsgrad,
            };
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
                dispatch!(float dtype, T => check_adam::<T>(&settings, time == 1), else unreachable!());
            }
        }
    }
}

fn sgd_reference<W: Wide>(at: [W; 3], s: &Sgd, starts: bool) -> [W; 2] {
    let of = W::from_f64;
    let [x, mut g, v] = at;
    if s.weight_decay != 0.0 {
        g = g + x * of(s.weight_decay);
    }
    let v = if starts { g } else { v * of(s.momentum) + g * of(1.0 - s.dampening) };
    let step = match (s.momentum != 0.0, s.nesterov) {
        (false, _) => g,
        (true, false) => v,
        (true, true) => g + v * of(s.momentum),
    };
    [x - step * of(s.lr), v]
}

fn check_sgd<T: Float<Wide: Wide>>(settings: &Sgd, starts: bool) {
    let mut random = Random(11);
    let shapes = shapes();
    let lists: Vec<Vec<Array>> = (0..3).map(|_| random.list::<T>(&shapes)).collect();
    let velocities = if starts { Vec::new() } else { refs(&lists[2]) };
    let out = sgd([&refs(&lists[0]), &refs(&lists[1]), &velocities], settings).unwrap();
    let streams = if settings.momentum == 0.0 { 1 } else { 2 };
    assert_eq!(out.len(), streams * shapes.len());
    for k in 0..shapes.len() {
        let values: Vec<Vec<T>> = lists.iter().map(|list| list[k].to_vec().unwrap()).collect();
        for (i, x) in values[0].iter().enumerate() {
            let at = [x.widen(), values[1][i].widen(), values[2][i].widen()];
            let want = sgd_reference(at, settings, starts);
            for (s, want) in want.into_iter().enumerate().take(streams) {
                let got = out[s * shapes.len() + k].to_vec::<T>().unwrap()[i].to_f64();
                assert!(got == T::narrow(want).to_f64(), "tensor {k}, element {i}, stream {s}");
            }
        }
    }
}

#[test]
fn sgd_has_the_bits_of_the_formula_for_any_layout_and_thread_count() {
    for threads in [1, 4] {
        threads::set_num_threads(threads);
        for (momentum, nesterov, starts) in
            [(0.0, false, true), (0.9, false, true), (0.9, true, false), (0.5, false, false)]
        {
            let settings = Sgd { lr: 0.1, momentum, dampening: 0.25, weight_decay: momentum / 4.0, nesterov };
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
                dispatch!(float dtype, T => check_sgd::<T>(&settings, starts), else unreachable!());
            }
        }
    }
}

#[test]
fn norms_are_held_for_each_tensor_or_for_all() {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        dispatch!(float dtype, T => {
            let list = Random(3).list::<T>(&shapes());
            let norm = |x: &Array| x.to_vec::<T>().unwrap().iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>();
            for joint in [false, true] {
                let all = list.iter().map(&norm).sum::<f64>();
                for (x, found) in list.iter().zip(clip_norms(&refs(&list), 2.0, joint).unwrap()) {
                    let factor = (2.0 / if joint { all } else { norm(x) }.sqrt()).min(1.0);
                    for (a, b) in x.to_vec::<T>().unwrap().iter().zip(found.to_vec::<T>().unwrap()) {
                        assert!((a.to_f64() * factor - b.to_f64()).abs() < 2e-3 * factor, "{dtype:?} {joint}");
                    }
                }
            }
        }, else unreachable!());
    }
    let nan = Array::from_slice(&[f32::NAN, 1.0], &[2]).unwrap();
    let found = clip_norms(&[&nan, &Array::zeros(DType::F32, &[1]).unwrap()], 1.0, true).unwrap();
    assert!(found.iter().all(|x| x.to_vec::<f32>().unwrap().iter().all(|x| x.is_nan())));
    assert!(clip_norms(&[], 1.0, true).unwrap().is_empty());
}

#[test]
fn the_largest_mean_keeps_nan() {
    let settings =
        Adam { lr: 0.1, time: 2, betas: (0.9, 0.9), epsilon: 0.0, weight_decay: 0.0, decoupled: false, amsgrad: true };
    let of = |values: [f32; 3]| Array::from_slice(&values, &[3]).unwrap();
    let (one, second, top) = (of([1.0; 3]), of([f32::NAN, 1.0, 1.0]), of([5.0, f32::NAN, 5.0]));
    let out = adam([&[&one], &[&one], &[&one], &[&second], &[&top]], &settings).unwrap();
    let got = out[3].to_vec::<f32>().unwrap();
    assert!(got[0].is_nan() && got[1].is_nan() && got[2] == 5.0, "{got:?}");
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let settings = Sgd { lr: 0.1, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false };
    let (a, b) = (Array::zeros(DType::F32, &[3]).unwrap(), Array::zeros(DType::F32, &[2]).unwrap());
    let wide = Array::zeros(DType::F64, &[3]).unwrap();
    assert!(matches!(sgd([&[&a], &[&b], &[]], &settings), Err(Error::Value(_))));
    assert!(matches!(sgd([&[&a], &[&a, &a], &[]], &settings), Err(Error::Value(_))));
    assert!(matches!(sgd([&[&a], &[&wide], &[]], &settings), Err(Error::Rejected(_))));
    assert!(sgd([&[], &[], &[]], &settings).unwrap().is_empty());
}

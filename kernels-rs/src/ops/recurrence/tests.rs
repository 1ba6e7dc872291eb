use super::*;
use crate::ops::samples::{Rng, dense, floats, view_of};

/// Rows times columns.
fn product(a: &[f64], b: &[f64], wide: usize) -> Vec<f64> {
    (0..wide).map(|j| a.iter().enumerate().map(|(l, x)| x * b[l * wide + j]).sum()).collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

struct Sample {
    inputs: Array,
    weight: Array,
    bias: Array,
    starts: [Array; 2],
    lengths: Option<Array>,
    reverse: bool,
    sizes: [usize; 3],
}

fn sample(rng: &mut Rng, dtype: DType, gates: usize) -> Sample {
    let sizes @ [n, steps, size] = [rng.below(20), rng.below(5), rng.below(12)];
    let lengths: Vec<i32> = (0..n).map(|_| rng.below(steps + 2) as i32).collect();
    Sample {
        inputs: view_of(rng, dtype, &[n, steps, gates * size], false),
        weight: view_of(rng, dtype, &[size, gates * size], false),
        bias: dense(rng, dtype, &[gates * size], false),
        starts: [view_of(rng, dtype, &[n, size], false), dense(rng, dtype, &[n, size], false)],
        lengths: (rng.below(2) == 0).then(|| Array::from_slice(&lengths, &[n]).unwrap()),
        reverse: rng.below(2) == 0,
        sizes,
    }
}

impl Sample {
    fn given(&self) -> Given<'_> {
        let Self { inputs, weight, lengths, reverse, .. } = self;
        Given { inputs, weight, lengths: lengths.as_ref(), reverse: *reverse }
    }

    /// States by the formula, in f64, in the order of the steps.
    fn plain(&self, step: impl Fn(&[f64], &[f64], &[Vec<f64>; 2]) -> [Vec<f64>; 2]) -> [Vec<f64>; 2] {
        let [n, steps, size] = self.sizes;
        let (inputs, weight) = (floats(&self.inputs), floats(&self.weight));
        let wide = self.weight.shape()[1];
        let lengths = self.lengths.as_ref().map(floats);
        let mut out = [vec![0.0; n * steps * size], vec![0.0; n * steps * size]];
        for i in 0..n {
            let mut state = self.starts.each_ref().map(|x| floats(x)[i * size..(i + 1) * size].to_vec());
            let order: Vec<_> = if self.reverse { (0..steps).rev().collect() } else { (0..steps).collect() };
            for t in order {
                if lengths.as_ref().is_none_or(|lengths| (t as f64) < lengths[i]) {
                    let given = &inputs[(i * steps + t) * wide..][..wide];
                    state = step(given, &product(&state[0], &weight, wide), &state);
                }
                for (out, state) in out.iter_mut().zip(&state) {
                    out[(i * steps + t) * size..][..size].copy_from_slice(state);
                }
            }
        }
        out
    }
}

fn close(found: &Array, wanted: &[f64], what: &str) {
    let tolerance = if found.dtype() == DType::F64 { 1e-12 } else { 2e-4 };
    let found = floats(found);
    assert_eq!(found.len(), wanted.len());
    for (at, (a, b)) in found.iter().zip(wanted).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} for {b} at {at}");
    }
}

fn lstm(given: &[f64], kept: &[f64], state: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    let n = state[0].len();
    let at = |gate: usize, j: usize| given[gate * n + j] + kept[gate * n + j];
    let cell: Vec<f64> =
        (0..n).map(|j| sigmoid(at(1, j)) * state[1][j] + sigmoid(at(0, j)) * at(2, j).tanh()).collect();
    [(0..n).map(|j| sigmoid(at(3, j)) * cell[j].tanh()).collect(), cell]
}

#[test]
fn states_are_those_of_the_formulas() {
    let mut rng = Rng::new(1);
    for round in 0..200 {
        let dtype = if round % 2 == 0 { DType::F32 } else { DType::F64 };
        let x = sample(&mut rng, dtype, 4);
        let [hiddens, cells] = x.plain(lstm);
        let found = lstm_steps(&x.given(), &x.starts[0], &x.starts[1]).unwrap();
        close(&found.0, &hiddens, "hidden states of lstm");
        close(&found.1, &cells, "cells of lstm");

        let x = sample(&mut rng, dtype, 3);
        let (bias, with_bias) = (floats(&x.bias), rng.below(2) == 0);
        let [wanted, _] = x.plain(|given, kept, state| {
            let n = state[0].len();
            let kept: Vec<f64> = kept.iter().zip(&bias).map(|(x, b)| if with_bias { x + b } else { *x }).collect();
            let gate = |gate: usize, j: usize| sigmoid(given[gate * n + j] + kept[gate * n + j]);
            let new = |j: usize| (given[2 * n + j] + gate(0, j) * kept[2 * n + j]).tanh();
            let state_of = |j: usize| gate(1, j) * state[0][j] + (1.0 - gate(1, j)) * new(j);
            [(0..n).map(state_of).collect(), state[1].clone()]
        });
        let found = gru_steps(&x.given(), with_bias.then_some(&x.bias), &x.starts[0]).unwrap();
        close(&found, &wanted, "gru");

        let x = sample(&mut rng, dtype, 1);
        for activation in [Activation::Relu, Activation::Tanh] {
            let [wanted, _] = x.plain(|given, kept, state| {
                let sum = given.iter().zip(kept).map(|(a, b)| a + b);
                let apply = |x: f64| if activation == Activation::Tanh { x.tanh() } else { x.max(0.0) };
                [sum.map(apply).collect(), state[1].clone()]
            });
            close(&rnn_steps(&x.given(), &x.starts[0], activation).unwrap(), &wanted, "rnn");
        }
    }
}

impl Sample {
    /// The same with one number moved: of the inputs, of the states at the start, of the bias.
    fn moved(&self, which: usize, at: usize, by: f64) -> Self {
        let change = |x: &Array, place: usize| {
            let mut values = floats(x);
            if place == which {
                values[at] += by;
            }
            Array::from_slice(&values, x.shape()).unwrap()
        };
        let [first, second] = &self.starts;
        Self {
            inputs: change(&self.inputs, 0),
            starts: [change(first, 1), change(second, 2)],
            bias: change(&self.bias, 3),
            weight: self.weight.clone(),
            lengths: self.lengths.clone(),
            ..*self
        }
    }

    /// Holds a number of each cotangent, in the order of `moved`, to what a small step changes `value` by.
    fn check(&self, rng: &mut Rng, cotangents: &[(usize, Vec<f64>)], value: impl Fn(&Self) -> f64) {
        const STEP: f64 = 1e-6;
        for (which, cotangent) in cotangents {
            let at = rng.below(cotangent.len());
            let wanted = (value(&self.moved(*which, at, STEP)) - value(&self.moved(*which, at, -STEP))) / (2.0 * STEP);
            let found = cotangent[at];
            assert!((found - wanted).abs() < 1e-4 * (1.0 + wanted.abs()), "{which}: {found} for {wanted}");
        }
    }
}

fn dot(x: &Array, y: &Array) -> f64 {
    floats(x).iter().zip(floats(y)).map(|(x, y)| x * y).sum()
}

#[test]
fn cotangents_are_differences() {
    let mut rng = Rng::new(2);
    for _ in 0..60 {
        let x = sample(&mut rng, DType::F64, 4);
        if x.sizes.contains(&0) {
            continue;
        }
        let (hiddens, cells) = lstm_steps(&x.given(), &x.starts[0], &x.starts[1]).unwrap();
        let g = [0, 1].map(|_| dense(&mut rng, DType::F64, &x.sizes, false));
        let found = Found { hiddens: &hiddens, cells: &cells, g_hiddens: Some(&g[0]), g_cells: Some(&g[1]) };
        let all = lstm_steps_backward(&x.given(), &x.starts[0], &x.starts[1], &found).unwrap();
        x.check(&mut rng, &[(0, floats(&all.0)), (1, floats(&all.1)), (2, floats(&all.2))], |x| {
            let (hiddens, cells) = lstm_steps(&x.given(), &x.starts[0], &x.starts[1]).unwrap();
            dot(&hiddens, &g[0]) + dot(&cells, &g[1])
        });
    }
}

#[test]
fn cotangents_of_one_state_are_differences() {
    let mut rng = Rng::new(3);
    for _ in 0..60 {
        let x = sample(&mut rng, DType::F64, 3);
        if x.sizes.contains(&0) {
            continue;
        }
        let g = dense(&mut rng, DType::F64, &x.sizes, false);
        let states = |x: &Sample| gru_steps(&x.given(), Some(&x.bias), &x.starts[0]).unwrap();
        let hiddens = states(&x);
        let all = gru_steps_backward(&x.given(), Some(&x.bias), &x.starts[0], &hiddens, &g).unwrap();
        let wide = x.bias.numel();
        let products = floats(&all.1);
        let of_bias = (0..wide).map(|j| products.iter().skip(j).step_by(wide).sum()).collect();
        let cotangents = [(0, floats(&all.0)), (1, floats(&all.2)), (3, of_bias)];
        x.check(&mut rng, &cotangents, |x| dot(&states(x), &g));

        let x = sample(&mut rng, DType::F64, 1);
        if x.sizes.contains(&0) {
            continue;
        }
        let g = dense(&mut rng, DType::F64, &x.sizes, false);
        for activation in [Activation::Relu, Activation::Tanh] {
            let states = |x: &Sample| rnn_steps(&x.given(), &x.starts[0], activation).unwrap();
            let hiddens = states(&x);
            let given = Given { inputs: &hiddens, ..x.given() };
            let all = rnn_steps_backward(&given, &x.starts[0], &g, activation).unwrap();
            x.check(&mut rng, &[(0, floats(&all.0)), (1, floats(&all.1))], |x| dot(&states(x), &g));
        }
    }
}

/// 0.25 a step: behind 60 of 100 steps a cotangent would be denormal.
#[test]
fn cotangents_that_vanish_are_zero_before_they_are_denormal() {
    let of = |value: f32, shape: &[usize]| Array::from_slice(&vec![value; shape.iter().product()], shape).unwrap();
    let (hiddens, weight, hidden) = (of(1.0, &[1, 100, 1]), of(0.25, &[1, 1]), of(0.0, &[1, 1]));
    let mut last = vec![0.0_f32; 100];
    last[99] = 1.0;
    let g = Array::from_slice(&last, &[1, 100, 1]).unwrap();
    let given = Given { inputs: &hiddens, weight: &weight, lengths: None, reverse: false };
    let (pulls, first) = rnn_steps_backward(&given, &hidden, &g, Activation::Relu).unwrap();
    let found = pulls.to_vec::<f32>().unwrap();
    assert_eq!(found.iter().filter(|&&x| x > 0.0).count(), 52, "2^-102 is the last one");
    assert!(found.iter().all(|&x| x == 0.0 || x >= f32::MIN_POSITIVE / f32::EPSILON));
    assert_eq!(first.to_vec::<f32>().unwrap(), [0.0]);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let zeros = |shape: &[usize]| Array::zeros(DType::F32, shape).unwrap();
    let (inputs, weight) = (zeros(&[2, 3, 8]), zeros(&[2, 8]));
    let given = Given { inputs: &inputs, weight: &weight, lengths: None, reverse: false };
    assert!(lstm_steps(&given, &zeros(&[2, 2]), &zeros(&[2, 3])).is_err());
    assert!(lstm_steps(&given, &zeros(&[1, 2]), &zeros(&[1, 2])).is_err());
    assert!(gru_steps(&given, None, &zeros(&[2, 2])).is_err());
    assert!(rnn_steps(&given, &zeros(&[2, 2]), Activation::Tanh).is_err());
    let (three, weight3) = (zeros(&[2, 3, 6]), zeros(&[2, 6]));
    let gru = Given { inputs: &three, weight: &weight3, lengths: None, reverse: false };
    let (states, others) = (zeros(&[2, 3, 2]), zeros(&[2, 2, 2]));
    assert!(gru_steps_backward(&gru, None, &zeros(&[2, 2]), &states, &states).is_ok());
    assert!(gru_steps_backward(&gru, None, &zeros(&[2, 2]), &states, &others).is_err());
    assert!(gru_steps_backward(&gru, Some(&zeros(&[5])), &zeros(&[2, 2]), &states, &states).is_err());
    let plain = Given { inputs: &states, weight: &zeros(&[2, 2]), lengths: None, reverse: false };
    assert!(rnn_steps_backward(&plain, &zeros(&[2, 2]), &others, Activation::Tanh).is_err());
    let short = zeros(&[1]);
    assert!(lstm_steps(&Given { lengths: Some(&short), ..given }, &zeros(&[2, 2]), &zeros(&[2, 2])).is_err());
}

use super::*;
use crate::array::view;
use crate::machine::threads::set_num_threads;
use crate::ops::elementwise::convert::cast;
use gradient::summed_to;

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }

    fn value(&mut self) -> f64 {
        self.next(4001) as f64 / 1000.0 - 2.0
    }

    pub fn dense(&mut self, dtype: DType, shape: &[usize]) -> Array {
        let values: Vec<f64> = (0..shape::numel(shape)).map(|_| self.value()).collect();
        cast(&Array::from_slice(&values, shape).unwrap(), dtype).unwrap()
    }

    /// `[batch, heads, rows, cols]` in a random layout: dense, a view of `[batch, rows, heads, cols]`, turned over,
    /// every second column, or the rows reversed.
    pub fn heads(&mut self, dtype: DType, shape: &[usize; 4]) -> Array {
        let [b, h, n, d] = *shape;
        match self.next(5) {
            0 => self.dense(dtype, shape),
            1 => view::permute_dims(&self.dense(dtype, &[b, n, h, d]), &[0, 2, 1, 3]).unwrap(),
            2 => view::permute_dims(&self.dense(dtype, &[b, h, d, n]), &[0, 1, 3, 2]).unwrap(),
            3 => view::slice(&self.dense(dtype, &[b, h, n, 2 * d]), &[0; 4], shape, &[1, 1, 1, 2]).unwrap(),
            _ => view::flip(&self.dense(dtype, shape), &[2]).unwrap(),
        }
    }

    /// A shape that broadcasts to this one.
    pub fn narrower(&mut self, shape: &[usize]) -> Vec<usize> {
        let kept: Vec<usize> = shape.iter().map(|&n| if self.next(3) == 0 { 1 } else { n }).collect();
        kept[self.next(3)..].to_vec()
    }

    pub fn mask(&mut self, shape: &[usize]) -> Array {
        let shape = self.narrower(shape);
        let values: Vec<bool> = (0..shape::numel(&shape)).map(|_| self.next(3) == 0).collect();
        Array::from_slice(&values, &shape).unwrap()
    }
}

fn values(x: &Array) -> Vec<f64> {
    cast(x, DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn stretched(x: &Array, shape: &[usize]) -> Vec<f64> {
    values(&view::broadcast_to(x, shape).unwrap())
}

/// The definition, one query at a time: the result, and the cotangents of query, key, value and scores.
pub fn reference(g: &Array, operands: &Operands<'_>, settings: Settings) -> [Vec<f64>; 5] {
    let (q, k) = (operands.query.shape(), operands.key.shape());
    let [batch, heads, queries, size] = [q[0], q[1], q[2], q[3]];
    let (shared, keys, cols) = (k[1], k[2], operands.value.shape()[3]);
    let scores = [batch, heads, queries, keys];
    let mask = operands.mask.map(|mask| stretched(mask, &scores));
    let bias = operands.bias.map(|bias| stretched(bias, &scores));
    let [qs, ks, vs, gs] = [operands.query, operands.key, operands.value, g].map(values);
    let mut out = vec![0.0; batch * heads * queries * cols];
    let (mut dq, mut dk, mut dv) = (vec![0.0; qs.len()], vec![0.0; ks.len()], vec![0.0; vs.len()]);
    let mut ds = vec![0.0; shape::numel(&scores)];
    for row in 0..batch * heads * queries {
        let (head, i) = (row / queries, row % queries);
        let own = head / heads * shared + head % heads / (heads / shared);
        let key = |j: usize, d: usize| (own * keys + j) * size + d;
        let value = |j: usize, d: usize| (own * keys + j) * cols + d;
        let mut caps = vec![0.0; keys];
        let mut p: Vec<f64> = (0..keys)
            .map(|j| {
                let mut s = (0..size).map(|d| qs[row * size + d] * ks[key(j, d)]).sum::<f64>() * settings.scale;
                if let Some(cap) = settings.softcap {
                    caps[j] = (s / cap).tanh();
                    s = cap * caps[j];
                }
                let hidden = mask.as_ref().is_some_and(|mask| mask[row * keys + j] != 0.0)
                    || settings.is_causal && j + queries > i + keys;
                let s = s + bias.as_ref().map_or(0.0, |bias| bias[row * keys + j]);
                if hidden { f64::NEG_INFINITY } else { s }
            })
            .collect();
        let top = p.iter().fold(f64::NEG_INFINITY, |top, &s| top.max(s));
        for s in &mut p {
            *s = if *s == f64::NEG_INFINITY { 0.0 } else { (*s - top).exp() };
        }
        let total = p.iter().sum::<f64>();
        for s in &mut p {
            *s /= if total == 0.0 { 1.0 } else { total };
        }
        let pull: Vec<f64> = (0..keys).map(|j| (0..cols).map(|d| gs[row * cols + d] * vs[value(j, d)]).sum()).collect();
        let inner: f64 = p.iter().zip(&pull).map(|(p, x)| p * x).sum();
        for j in 0..keys {
            let d_score = p[j] * (pull[j] - inner);
            ds[row * keys + j] = d_score;
            let d_score = d_score * (1.0 - caps[j] * caps[j]) * settings.scale;
            for d in 0..cols {
                out[row * cols + d] += p[j] * vs[value(j, d)];
                dv[value(j, d)] += p[j] * gs[row * cols + d];
            }
            for d in 0..size {
                dq[row * size + d] += d_score * ks[key(j, d)];
                dk[key(j, d)] += d_score * qs[row * size + d];
            }
        }
    }
    [out, dq, dk, dv, ds]
}

/// Relative to the largest value.
pub fn close(what: &str, got: &Array, expected: &[f64], epsilon: f64) {
    let got = values(got);
    assert_eq!(got.len(), expected.len(), "{what}");
    let top = expected.iter().fold(1.0f64, |top, x| top.max(x.abs()));
    for (i, (&a, &b)) in got.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= epsilon * top, "{what} {i}: got {a}, expected {b}");
    }
}

fn check_sizes(random: &mut Random, dtype: DType, epsilon: f64, [b, shared, group, q, k, d, v]: [usize; 7]) {
    let heads = shared * group;
    let (query, key) = (random.heads(dtype, &[b, heads, q, d]), random.heads(dtype, &[b, shared, k, d]));
    let (value, g) = (random.heads(dtype, &[b, shared, k, v]), random.heads(dtype, &[b, heads, q, v]));
    let scores = [b, heads, q, k];
    let mask = (random.next(2) == 0).then(|| random.mask(&scores));
    let shape = random.narrower(&scores);
    let bias = (random.next(2) == 0).then(|| random.dense(dtype, &shape));
    let settings = Settings {
        scale: 1.0 / (d.max(1) as f64).sqrt(),
        softcap: (random.next(3) == 0).then_some(1.5),
        is_causal: random.next(2) == 0,
    };
    let operands = Operands { query: &query, key: &key, value: &value, mask: mask.as_ref(), bias: bias.as_ref() };
    let what = format!("{} {settings:?} {query:?} {key:?} {value:?} {mask:?} {bias:?}", dtype.name());
    let [out, dq, dk, dv, ds] = reference(&g, &operands, settings);
    set_num_threads(1 + random.next(4));
    close(&what, &attention(operands, settings).unwrap(), &out, epsilon);
    let (gq, gk, gv, gb) = attention_backward(&g, operands, settings).unwrap();
    for (name, got, expected) in [("query", gq, dq), ("key", gk, dk), ("value", gv, dv)] {
        close(&format!("d{name} of {what}"), &got, &expected, 4.0 * epsilon);
    }
    match bias {
        None => assert_eq!(gb.shape()[..], [0]),
        Some(bias) => {
            let full = Array::from_slice(&ds, &scores).unwrap();
            let expected = values(&summed_to(&full, bias.shape()).unwrap());
            close(&format!("dbias of {what}"), &gb, &expected, 4.0 * epsilon);
        }
    }
}

const KINDS: [(DType, f64); 4] = [(DType::F32, 3e-6), (DType::F64, 1e-14), (DType::F16, 2e-3), (DType::BF16, 1.2e-2)];

#[test]
fn random_sizes_layouts_and_settings() {
    let mut random = Random(5);
    for _ in 0..60 {
        let (dtype, epsilon) = KINDS[random.next(4)];
        let sizes = [
            1 + random.next(2),
            1 + random.next(2),
            1 + random.next(3),
            1 + random.next(80),
            1 + random.next(90),
            1 + random.next(40),
            1 + random.next(40),
        ];
        check_sizes(&mut random, dtype, epsilon, sizes);
    }
}

#[test]
fn several_tiles_of_keys() {
    let mut random = Random(6);
    for sizes in [[1, 1, 1, 70, 300, 64, 64], [1, 2, 2, 33, 421, 17, 48], [2, 1, 1, 3, 290, 8, 5]] {
        for (dtype, epsilon) in KINDS {
            check_sizes(&mut random, dtype, epsilon, sizes);
        }
    }
}

#[test]
fn few_queries_and_many_keys() {
    let mut random = Random(7);
    for sizes in [
        [1, 1, 1, 1, 3000, 64, 64],
        [1, 2, 4, 1, 2500, 40, 24],
        [3, 2, 1, 2, 1100, 128, 33],
        [1, 1, 1, 1, 20_000, 8, 5],
    ] {
        for (dtype, epsilon) in KINDS {
            check_sizes(&mut random, dtype, epsilon, sizes);
        }
    }
}

#[test]
fn empty_operands_give_zeros() {
    let mut random = Random(8);
    for sizes in [[1, 1, 1, 0, 3, 2, 2], [1, 1, 2, 3, 0, 2, 2], [2, 1, 1, 3, 4, 0, 2], [1, 1, 1, 3, 4, 2, 0]] {
        check_sizes(&mut random, DType::F32, 1e-6, sizes);
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let mut random = Random(9);
    for [b, shared, group, q, k] in [[1, 3, 2, 150, 200], [1, 1, 1, 400, 150], [1, 1, 4, 1, 5000]] {
        let (query, key) =
            (random.heads(DType::F32, &[b, shared * group, q, 32]), random.heads(DType::F32, &[b, shared, k, 32]));
        let (value, g) =
            (random.heads(DType::F32, &[b, shared, k, 32]), random.heads(DType::F32, &[b, shared * group, q, 32]));
        let operands = Operands { query: &query, key: &key, value: &value, mask: None, bias: None };
        let settings = Settings { scale: 0.2, softcap: None, is_causal: true };
        let all = |threads| {
            set_num_threads(threads);
            let (dq, dk, dv, _) = attention_backward(&g, operands, settings).unwrap();
            [attention(operands, settings).unwrap(), dq, dk, dv]
                .map(|x| x.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>())
        };
        let expected = all(1);
        for threads in 2..5 {
            assert!(all(threads) == expected, "{threads} threads");
        }
    }
}

#[test]
fn a_hidden_key_may_hold_anything() {
    let mut random = Random(10);
    let query = random.dense(DType::F32, &[1, 20, 4]);
    let mut keys = random.dense(DType::F32, &[1, 30, 4]).to_vec::<f32>().unwrap();
    keys[4 * 7..4 * 8].fill(f32::NAN);
    let key = Array::from_slice(&keys, &[1, 30, 4]).unwrap();
    let mask: Vec<bool> = (0..30).map(|j| j == 7).collect();
    let mask = Array::from_slice(&mask, &[1, 1, 30]).unwrap();
    let operands = Operands { query: &query, key: &key, value: &query, mask: Some(&mask), bias: None };
    let value = random.dense(DType::F32, &[1, 30, 4]);
    let operands = Operands { value: &value, ..operands };
    let out = attention(operands, Settings { scale: 0.5, softcap: None, is_causal: false }).unwrap();
    assert!(values(&out).iter().all(|x| x.is_finite()));
}

#[test]
fn operands_that_do_not_fit_are_rejected() {
    let settings = Settings { scale: 1.0, softcap: None, is_causal: false };
    let make = |shape: &[usize]| Array::zeros(DType::F32, shape).unwrap();
    for (q, k, v) in [
        ([2, 3, 4], [2, 5, 3], [2, 5, 4]),
        ([2, 3, 4], [2, 5, 4], [2, 6, 4]),
        ([3, 3, 4], [2, 5, 4], [2, 5, 4]),
        ([2, 3, 4], [2, 5, 4], [1, 5, 4]),
    ] {
        let (query, key, value) = (make(&q), make(&k), make(&v));
        let operands = Operands { query: &query, key: &key, value: &value, mask: None, bias: None };
        assert!(matches!(attention(operands, settings), Err(Error::Rejected(_))), "{q:?} {k:?} {v:?}");
    }
}

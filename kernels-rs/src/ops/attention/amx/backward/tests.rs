use super::super::super::tests::{Random, close, reference};
use super::super::super::{Operands, Settings};
use super::super::tests::{bits, huge, prepares, rising, sizes};
use super::*;
use crate::array::Array;
use crate::dtype::{DType, Float};
use crate::machine::amx::{Processor, model::Model};
use crate::machine::needs;
use crate::machine::threads::set_num_threads;

fn by<U: Unit>(g: &Array, operands: Operands<'_>, settings: Settings) -> [Array; 4] {
    let mut shape = *operands.query.shape();
    shape[3] = operands.key.shape()[2];
    let like = |x: &Array| Array::uninit(DType::BF16, x.shape()).unwrap();
    let (mut query, mut key, mut value) = (like(operands.query), like(operands.key), like(operands.value));
    let mut scores = Array::uninit(DType::F32, &shape).unwrap();
    let wanted = operands.bias.is_some();
    let out = Cotangents { query: &mut query, key: &mut key, value: &mut value, scores: wanted.then_some(&mut scores) };
    run::<U>(&Job::new(operands, settings), &Heads::new(g, g.shape()), out).unwrap();
    if !wanted {
        scores = Array::zeros(DType::F32, &[0]).unwrap();
    }
    [query, key, value, scores]
}

/// By the model of the unit, and by the unit where there is one.
fn found(g: &Array, operands: Operands<'_>, settings: Settings) -> Vec<[Array; 4]> {
    let mut all = vec![by::<Model>(g, operands, settings)];
    if needs::tiles() {
        all.push(by::<Processor>(g, operands, settings));
    }
    all
}

fn check(random: &mut Random, [b, shared, group, q, k, d, v]: [usize; 7], scale: f64) {
    let (heads, dtype) = (shared * group, DType::BF16);
    let (query, key) = (random.heads(dtype, &[b, heads, q, d]), random.heads(dtype, &[b, shared, k, d]));
    let (value, g) = (random.heads(dtype, &[b, shared, k, v]), random.heads(dtype, &[b, heads, q, v]));
    let scores = [b, heads, q, k];
    let mask = (random.next(2) == 0).then(|| random.mask(&scores));
    let shape = random.narrower(&scores);
    let bias = (random.next(2) == 0).then(|| random.dense(dtype, &shape));
    let settings = Settings {
        scale: scale / (d as f64).sqrt(),
        softcap: (random.next(3) == 0).then_some(1.5),
        is_causal: random.next(2) == 0,
    };
    let operands = Operands { query: &query, key: &key, value: &value, mask: mask.as_ref(), bias: bias.as_ref() };
    let what = format!("{settings:?} {query:?} {key:?} {value:?} {mask:?} {bias:?}");
    let [_, dq, dk, dv, ds] = reference(&g, &operands, settings);
    set_num_threads(1);
    let one = found(&g, operands, settings);
    for [gq, gk, gv, gs] in &one {
        // A result is rounded to 8 bits, by up to 3.91e-3 of the largest; what the products before it lose is 1e-5 of that.
        for (name, got, want) in [("query", gq, &dq), ("key", gk, &dk), ("value", gv, &dv)] {
            close(&format!("d{name} of {what}"), got, want, 3.95e-3);
        }
        if bias.is_some() {
            close(&format!("dscores of {what}"), gs, &ds, 2e-5);
        }
    }
    set_num_threads(3);
    for (one, three) in one.iter().zip(found(&g, operands, settings)) {
        assert!(bits(&one[..3]) == bits(&three[..3]), "threads change {what}");
    }
}

#[test]
fn random_sizes_layouts_and_settings() {
    let mut random = Random(61);
    for _ in (0..60).filter(|_| prepares()) {
        let sizes = sizes(&mut random);
        let scale = [1.0, 3.0, -1.0][random.next(3)];
        check(&mut random, sizes, scale);
    }
}

#[test]
fn several_groups_and_tiles() {
    let mut random = Random(62);
    for sizes in [
        [1, 1, 1, 300, 120, 64, 32],
        [1, 1, 1, 70, 300, 64, 64],
        [1, 2, 2, 33, 421, 17, 48],
        [1, 1, 1, 300, 290, 8, 33],
        [2, 4, 1, 200, 400, 16, 24],
    ] {
        for _ in (0..2).filter(|_| prepares()) {
            check(&mut random, sizes, 1.0);
        }
    }
}

#[test]
fn queries_that_see_nothing_give_zeros() {
    if !prepares() {
        return;
    }
    let mut random = Random(63);
    let dtype = DType::BF16;
    let (query, key) = (random.dense(dtype, &[1, 1, 200, 16]), random.dense(dtype, &[1, 1, 40, 16]));
    let g = random.dense(dtype, &[1, 1, 200, 16]);
    let mask = Array::from_slice(&[true], &[1]).unwrap();
    for (mask, is_causal) in [(None, true), (Some(&mask), false)] {
        let operands = Operands { query: &query, key: &key, value: &key, mask, bias: None };
        for [dq, dk, dv, _] in found(&g, operands, Settings { scale: 0.3, softcap: None, is_causal }) {
            let zeros = |bits: &[u16]| bits.iter().all(|&x| x == 0 || x == 1 << 15);
            let all = bits(&[dq, dk, dv]);
            assert!(zeros(&all[0][..160 * 16]), "causal {is_causal}");
            assert!(mask.is_none() || zeros(&all.concat()));
        }
    }
}

#[test]
fn scores_may_rise_from_tile_to_tile() {
    let (mut random, dtype) = (Random(64), DType::BF16);
    for by in [0.01, 0.06, 1.0, 300.0].into_iter().filter(|_| prepares()) {
        let (query, key) = (random.dense(dtype, &[1, 1, 40, 16]), random.dense(dtype, &[1, 1, 500, 16]));
        let (value, bias) = (random.dense(dtype, &[1, 1, 500, 16]), rising(500, by));
        let g = random.dense(dtype, &[1, 1, 40, 16]);
        let operands = Operands { query: &query, key: &key, value: &value, mask: None, bias: Some(&bias) };
        let settings = Settings { scale: 0.25, softcap: None, is_causal: false };
        let [_, dq, dk, dv, _] = reference(&g, &operands, settings);
        for [gq, gk, gv, _] in found(&g, operands, settings) {
            for (name, got, want) in [("query", gq, &dq), ("key", gk, &dk), ("value", gv, &dv)] {
                close(&format!("d{name}, rising by {by}"), &got, want, 3.95e-3);
            }
        }
    }
}

#[test]
fn scores_may_be_huge() {
    let (mut random, dtype) = (Random(66), DType::BF16);
    for keys in [90, 300].into_iter().filter(|_| prepares()) {
        let (query, key) = (huge(&mut random, &[1, 1, 40, 16]), huge(&mut random, &[1, 1, keys, 16]));
        let (value, g) = (random.dense(dtype, &[1, 1, keys, 16]), random.dense(dtype, &[1, 1, 40, 16]));
        let operands = Operands { query: &query, key: &key, value: &value, mask: None, bias: None };
        let settings = Settings { scale: 0.3, softcap: None, is_causal: false };
        let [_, _, _, dv, _] = reference(&g, &operands, settings);
        for [_, _, got, _] in found(&g, operands, settings) {
            close(&format!("dvalue, {keys} keys"), &got, &dv, 3.95e-3);
        }
    }
}

/// Lanes that have no query must not bring what a hidden key holds into the sums of others.
#[test]
fn a_hidden_key_may_hold_anything() {
    if !prepares() {
        return;
    }
    let (mut random, dtype) = (Random(65), DType::BF16);
    let (query, value) = (random.dense(dtype, &[1, 1, 20, 16]), random.dense(dtype, &[1, 1, 40, 16]));
    let mut keys = random.dense(dtype, &[1, 1, 40, 16]).to_vec::<BF16>().unwrap();
    keys[7 * 16..8 * 16].fill(BF16::narrow(f32::NAN));
    let key = Array::from_slice(&keys, &[1, 1, 40, 16]).unwrap();
    let mask: Vec<bool> = (0..20 * 40).map(|at| at % 40 == 7 || at == 3).collect();
    let mask = Array::from_slice(&mask, &[20, 40]).unwrap();
    let operands = Operands { query: &query, key: &key, value: &value, mask: Some(&mask), bias: None };
    let settings = Settings { scale: 0.25, softcap: None, is_causal: false };
    for [_, dk, dv, _] in found(&query, operands, settings) {
        let finite = |x: &Array| x.to_vec::<BF16>().unwrap().iter().all(|x| x.widen().is_finite());
        assert!(finite(&dk) && finite(&dv));
    }
}

/// Query, cotangent, key and value.
fn one_head(random: &mut Random, queries: usize, keys: usize) -> [Array; 4] {
    [[queries, 40], [queries, 24], [keys, 40], [keys, 24]]
        .map(|[rows, cols]| random.dense(DType::BF16, &[1, 1, rows, cols]))
}

/// With `by` in each place of one row.
fn spoiled(x: &Array, row: usize, by: f32) -> Array {
    let (mut values, cols) = (x.to_vec::<BF16>().unwrap(), x.shape()[3]);
    values[row * cols..(row + 1) * cols].fill(BF16::narrow(by));
    Array::from_slice(&values, x.shape()).unwrap()
}

/// Of some rows, where 0 has no sign.
fn rows(x: &Array, range: Range<usize>) -> Vec<u16> {
    let cols = x.shape()[3];
    bits(std::slice::from_ref(x))[0][range.start * cols..range.end * cols]
        .iter()
        .map(|&bits| if bits == 1 << 15 { 0 } else { bits })
        .collect()
}

/// Some queries and keys in few and in several tiles, of one group and of several, and queries that see nothing.
const CAUSAL: [(usize, usize); 4] = [(64, 69), (180, 187), (160, 325), (200, 60)];

#[test]
fn what_no_query_of_a_block_sees_leaves_no_trace_in_its_cotangents() {
    let mut random = Random(67);
    for ((queries, keys), by) in CAUSAL.into_iter().flat_map(|size| [f32::NAN, f32::INFINITY].map(|by| (size, by))) {
        if !prepares() {
            return;
        }
        let [query, g, key, value] = one_head(&mut random, queries, keys);
        // The block before ends in the middle of 32 keys, of which the next one sees more.
        let block = queries.saturating_sub(keys) / SIDE + 1;
        let hidden = block * SIDE + keys - queries;
        for cap in [None, Some(2.0)] {
            let found = |key: &Array, value: &Array| {
                let operands = Operands { query: &query, key, value, mask: None, bias: None };
                found(&g, operands, Settings { scale: 0.25, softcap: cap, is_causal: true })
            };
            let wanted = found(&key, &value);
            for all in [found(&spoiled(&key, hidden, by), &value), found(&key, &spoiled(&value, hidden, by))] {
                for ([want, ..], [got, ..]) in wanted.iter().zip(&all) {
                    let before = 0..block * SIDE;
                    assert!(rows(want, before.clone()) == rows(got, before), "{queries} queries, {keys} keys, {by}");
                    assert!(rows(want, 0..queries) != rows(got, 0..queries));
                }
            }
        }
    }
}

#[test]
fn queries_leave_no_trace_in_the_cotangents_of_what_their_block_does_not_see() {
    let mut random = Random(68);
    for ((queries, keys), by) in CAUSAL.into_iter().flat_map(|size| [f32::NAN, f32::INFINITY].map(|by| (size, by))) {
        if !prepares() {
            return;
        }
        let [query, g, key, value] = one_head(&mut random, queries, keys);
        for row in [3, 37] {
            let seen = ((row / SIDE + 1) * SIDE + keys).saturating_sub(queries);
            let found = |query: &Array, g: &Array| {
                let operands = Operands { query, key: &key, value: &value, mask: None, bias: None };
                found(g, operands, Settings { scale: 0.25, softcap: None, is_causal: true })
            };
            let wanted = found(&query, &g);
            for all in [found(&spoiled(&query, row, by), &g), found(&query, &spoiled(&g, row, by))] {
                for (want, got) in wanted.iter().zip(&all) {
                    for (want, got) in want[1..3].iter().zip(&got[1..3]) {
                        assert!(
                            rows(want, seen..keys) == rows(got, seen..keys),
                            "{queries} queries, {keys} keys, {by}"
                        );
                    }
                }
            }
        }
    }
}

use super::super::tests::{Random, close, reference};
use super::super::{Operands, Settings};
use super::*;
use crate::dtype::{DType, Float};
use crate::machine::amx::{Processor, model::Model};
use crate::machine::lanes::lane_count;
use crate::machine::needs;
use crate::machine::threads::set_num_threads;

/// False where not even what prepares the tiles runs.
pub fn prepares() -> bool {
    needs::packs_pairs() && lane_count::<f32>() == LINES
}

/// By the model of the unit, and by the unit where there is one.
fn found(operands: Operands<'_>, settings: Settings) -> Vec<Array> {
    let job = Job::<BF16>::new(operands, settings);
    let mut shape = *operands.query.shape();
    shape[3] = operands.value.shape()[3];
    let mut model = Array::uninit(DType::BF16, &shape).unwrap();
    run::<Model>(&job, &mut model);
    if !needs::tiles() {
        return vec![model];
    }
    let mut unit = Array::uninit(DType::BF16, &shape).unwrap();
    run::<Processor>(&job, &mut unit);
    vec![model, unit]
}

pub fn bits(all: &[Array]) -> Vec<Vec<u16>> {
    all.iter().map(|x| x.to_vec::<BF16>().unwrap().iter().map(|x| x.0).collect()).collect()
}

/// Of batch, heads of keys, queries of each, queries, keys, a row, a value.
pub fn sizes(random: &mut Random) -> [usize; 7] {
    [2, 2, 3, 80, 90, 70, 70].map(|most| 1 + random.next(most))
}

fn check(random: &mut Random, [b, shared, group, q, k, d, v]: [usize; 7]) {
    let (heads, dtype) = (shared * group, DType::BF16);
    let (query, key) = (random.heads(dtype, &[b, heads, q, d]), random.heads(dtype, &[b, shared, k, d]));
    let (value, g) = (random.heads(dtype, &[b, shared, k, v]), random.heads(dtype, &[b, heads, q, v]));
    let scores = [b, heads, q, k];
    let mask = (random.next(2) == 0).then(|| random.mask(&scores));
    let shape = random.narrower(&scores);
    let bias = (random.next(2) == 0).then(|| random.dense(dtype, &shape));
    let settings = Settings {
        scale: 1.0 / (d as f64).sqrt(),
        softcap: (random.next(3) == 0).then_some(1.5),
        is_causal: random.next(2) == 0,
    };
    let operands = Operands { query: &query, key: &key, value: &value, mask: mask.as_ref(), bias: bias.as_ref() };
    let what = format!("{settings:?} {query:?} {key:?} {value:?} {mask:?} {bias:?}");
    let [want, ..] = reference(&g, &operands, settings);
    set_num_threads(1);
    let one = found(operands, settings);
    for got in &one {
        close(&what, got, &want, 4.5e-3);
    }
    set_num_threads(3);
    assert!(bits(&one) == bits(&found(operands, settings)), "threads change {what}");
}

#[test]
fn random_sizes_layouts_and_settings() {
    let mut random = Random(51);
    for _ in (0..50).filter(|_| prepares()) {
        let sizes = sizes(&mut random);
        check(&mut random, sizes);
    }
}

#[test]
fn several_tiles_of_keys() {
    let mut random = Random(52);
    for sizes in [[1, 1, 1, 70, 300, 64, 64], [1, 2, 2, 33, 421, 17, 48], [1, 1, 1, 300, 290, 8, 33]] {
        if prepares() {
            check(&mut random, sizes);
        }
    }
}

/// A bias that makes the scores of later tiles the larger ones, by less and by more than sums are left to wait for.
pub fn rising(keys: usize, by: f64) -> Array {
    let values: Vec<BF16> = (0..keys).map(|key| BF16::narrow((key as f64 * by) as f32)).collect();
    Array::from_slice(&values, &[keys]).unwrap()
}

#[test]
fn scores_may_rise_from_tile_to_tile() {
    let (mut random, dtype) = (Random(53), DType::BF16);
    for by in [0.01, 0.06, 1.0, 300.0].into_iter().filter(|_| prepares()) {
        let (query, key) = (random.dense(dtype, &[1, 1, 40, 16]), random.dense(dtype, &[1, 1, 500, 16]));
        let (value, bias) = (random.dense(dtype, &[1, 1, 500, 16]), rising(500, by));
        let operands = Operands { query: &query, key: &key, value: &value, mask: None, bias: Some(&bias) };
        let settings = Settings { scale: 0.25, softcap: None, is_causal: false };
        let [want, ..] = reference(&query, &operands, settings);
        for got in found(operands, settings) {
            close(&format!("rising by {by}"), &got, &want, 4.5e-3);
        }
    }
}

/// So large that each query sees one key.
pub fn huge(random: &mut Random, shape: &[usize]) -> Array {
    let values: Vec<BF16> =
        random.dense(DType::F32, shape).to_vec::<f32>().unwrap().iter().map(|x| BF16::narrow(x * 3e8)).collect();
    Array::from_slice(&values, shape).unwrap()
}

#[test]
fn scores_may_be_huge() {
    let (mut random, dtype) = (Random(55), DType::BF16);
    for keys in [90, 300].into_iter().filter(|_| prepares()) {
        let (query, key) = (huge(&mut random, &[1, 1, 40, 16]), huge(&mut random, &[1, 1, keys, 16]));
        let value = random.dense(dtype, &[1, 1, keys, 16]);
        let operands = Operands { query: &query, key: &key, value: &value, mask: None, bias: None };
        let settings = Settings { scale: 0.3, softcap: None, is_causal: false };
        let [want, ..] = reference(&query, &operands, settings);
        for got in found(operands, settings) {
            close(&format!("{keys} keys"), &got, &want, 1e-4);
        }
    }
}

#[test]
fn values_that_no_query_of_a_block_sees_leave_no_trace() {
    let (mut random, dtype) = (Random(56), DType::BF16);
    let (query, key) = (random.dense(dtype, &[1, 1, 64, 16]), random.dense(dtype, &[1, 1, 69, 16]));
    let mut values = random.dense(dtype, &[1, 1, 69, 16]).to_vec::<BF16>().unwrap();
    values[40 * 16 + 3] = BF16::narrow(f32::INFINITY);
    let value = Array::from_slice(&values, &[1, 1, 69, 16]).unwrap();
    let operands = Operands { query: &query, key: &key, value: &value, mask: None, bias: None };
    let settings = Settings { scale: 0.25, softcap: None, is_causal: true };
    // The first block, which sees keys up to number 36, in one task with the second and in one of its own.
    for threads in [1, 64].into_iter().filter(|_| prepares()) {
        set_num_threads(threads);
        for got in found(operands, settings) {
            let first = &got.to_vec::<BF16>().unwrap()[..32 * 16];
            assert!(first.iter().all(|x| x.widen().is_finite()), "{threads} threads");
        }
    }
}

#[test]
fn scores_are_split_without_loss() {
    let mut random = Random(54);
    let block: Vec<f32> = (0..34 * SIDE).map(|_| random.next(1 << 24) as f32 / (1 << 23) as f32 - 1.0).collect();
    if !prepares() {
        return;
    }
    Arena::with([4 * STEP, 4 * STEP], |mut room| {
        let (left, right) = (room.take::<u8>(4 * STEP), room.take::<u8>(4 * STEP));
        // SAFETY: room for two steps of two parts, and the machine has the instructions.
        unsafe { lanes::split::<true>(&block, 2 * SIDE, 2 * STEP, left, right) };
        let at = |side: &[u8], at: usize| f32::from_bits(u32::from(u16::from_le_bytes([side[at], side[at + 1]])) << 16);
        for (row, lane) in (0..2 * SIDE).flat_map(|row| (0..SIDE).map(move |lane| (row, lane))) {
            let want = block.get(row * SIDE + lane).copied().unwrap_or(0.0);
            let start = row / SIDE * 2 * STEP;
            let of_left = start + row % SIDE * LINE + lane % LINES * 4 + lane / LINES * 2;
            let of_right = start + row % SIDE / 2 * 2 * LINE + lane * 4 + row % 2 * 2;
            for (side, place) in [(&*left, of_left), (&*right, of_right)] {
                let (upper, rest) = (at(side, place), at(side, place + STEP));
                assert!((upper - want).abs() <= want.abs() / 128.0, "{row} {lane}");
                assert!((upper + rest - want).abs() <= want.abs() / 32768.0, "{row} {lane}");
            }
        }
    });
}

use super::super::tests::{Random, close, reference};
use super::super::{Operands, Settings};
use super::*;
use crate::dtype::DType;
use crate::machine::amx::{Processor, model::Model};
use crate::machine::lanes::lane_count;
use crate::machine::threads::set_num_threads;

/// False where not even what prepares the tiles runs.
pub fn prepares() -> bool {
    lane_count::<f32>() == LINES && is_x86_feature_detected!("avx512bf16")
}

/// By the model of the unit, and by the unit where there is one.
fn found(operands: Operands<'_>, settings: Settings) -> Vec<Array> {
    let job = Job::<BF16>::new(operands, settings);
    let mut shape = *operands.query.shape();
    shape[3] = operands.value.shape()[3];
    let mut model = Array::uninit(DType::BF16, &shape).unwrap();
    run::<Model>(&job, &mut model);
    if !simd::has_amx() {
        return vec![model];
    }
    let mut unit = Array::uninit(DType::BF16, &shape).unwrap();
    run::<Processor>(&job, &mut unit);
    vec![model, unit]
}

pub fn bits(all: &[Array]) -> Vec<Vec<u16>> {
    all.iter().map(|x| x.to_vec::<BF16>().unwrap().iter().map(|x| x.0).collect()).collect()
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
        let sizes = [
            1 + random.next(2),
            1 + random.next(2),
            1 + random.next(3),
            1 + random.next(80),
            1 + random.next(90),
            1 + random.next(70),
            1 + random.next(70),
        ];
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

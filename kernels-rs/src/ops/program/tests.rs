//! Programs against the row kernels, bit for bit.

use super::code::compile;
use super::data::{Instr, Program};
use super::run;
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::dispatch;
use crate::dtype::{BF16, DType, F16};
use crate::error::Error;
use crate::machine::simd::{Level, level};
use crate::machine::threads;
use crate::ops::elementwise::kernel::{binary, unary};
use crate::ops::elementwise::{self, Operand, choice, convert};
use crate::ops::samples::{Rng, elements, view_of};

const DTYPES: [DType; 7] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool, DType::F16, DType::BF16];

pub(super) fn instr(op: &str, args: &[usize], dtype: DType) -> Instr {
    Instr { op: op.to_owned(), args: args.to_vec(), dtype }
}

pub(super) fn program(inputs: &[DType], numbers: &[DType], instrs: Vec<Instr>, outputs: &[usize]) -> Program {
    Program { inputs: inputs.to_vec(), numbers: numbers.to_vec(), instrs, outputs: outputs.to_vec() }
}

/// The elements as bits; NaN of a narrow float as one, since their conversion on its own keeps no payload.
fn bits(x: &Array) -> Vec<u64> {
    match x.dtype() {
        DType::F16 => {
            elements::<F16>(x).iter().map(|v| if v.to_f32().is_nan() { 0x7e00 } else { v.0 as u64 }).collect()
        }
        DType::BF16 => {
            elements::<BF16>(x).iter().map(|v| if v.to_f32().is_nan() { 0x7fc0 } else { v.0 as u64 }).collect()
        }
        _ => dispatch!(all x.dtype(), T => elements::<T>(x).into_iter().map(elementwise::to_word).collect()),
    }
}

#[track_caller]
pub(super) fn same(got: &Array, wanted: &Array, what: &str) {
    assert_eq!((got.dtype(), &got.shape()[..]), (wanted.dtype(), &wanted.shape()[..]), "{what}");
    let (got_bits, wanted_bits) = (bits(got), bits(wanted));
    let off = got_bits.iter().zip(&wanted_bits).position(|(a, b)| a != b);
    assert_eq!(off, None, "{what}: {got:?} {:x?} {:x?}", off.map(|at| got_bits[at]), off.map(|at| wanted_bits[at]));
}

/// The array with one kind of NaN: which of two NaN a sum of both has is up to the loop.
pub(super) fn one_nan(x: &Array) -> Array {
    let x = convert::cast(x, x.dtype()).unwrap();
    match x.dtype() {
        DType::F32 => {
            let own = elements::<f32>(&x).into_iter().map(|v| if v.is_nan() { f32::NAN } else { v });
            Array::from_slice(&own.collect::<Vec<_>>(), x.shape()).unwrap()
        }
        DType::F64 => {
            let own = elements::<f64>(&x).into_iter().map(|v| if v.is_nan() { f64::NAN } else { v });
            Array::from_slice(&own.collect::<Vec<_>>(), x.shape()).unwrap()
        }
        _ => x,
    }
}

/// What the row kernels give, from one value to the next.
fn one_by_one(program: &Program, operands: &[&Array], numbers: &[Scalar]) -> Vec<Array> {
    let first = operands.len();
    let mut made: Vec<Array> = Vec::new();
    for instr in &program.instrs {
        let given = |at: usize| match at {
            _ if at < first => Operand::Array(operands[at]),
            _ if at < first + numbers.len() => Operand::Scalar(numbers[at - first]),
            _ => Operand::Array(&made[at - first - numbers.len()]),
        };
        let array = |at: usize| match given(at) {
            Operand::Array(array) => array,
            Operand::Scalar(_) => panic!("a number alone"),
        };
        let out = match (instr.op.as_str(), &instr.args[..]) {
            ("cast", &[x]) => convert::cast(array(x), instr.dtype),
            ("where", &[condition, a, b]) => choice::select(given(condition), given(a), given(b)),
            ("clip", &[x, low, high]) => match (given(low), given(high)) {
                (Operand::Scalar(low), Operand::Scalar(high)) => choice::clip(array(x), Some(low), Some(high)),
                _ => panic!("a bound that is no number"),
            },
            (name, &[x]) => elementwise::unary(unary::ALL.iter().find(|row| row.name == name).unwrap(), array(x)),
            (name, &[a, b]) => {
                elementwise::binary(binary::ALL.iter().find(|row| row.name == name).unwrap(), given(a), given(b))
            }
            _ => panic!("no such instruction"),
        };
        made.push(out.unwrap());
    }
    program.outputs.iter().map(|&at| made[at - first - numbers.len()].clone()).collect()
}

/// Compares a program with its ops; false where there is no code for it.
fn agrees(program: &Program, operands: &[&Array], numbers: &[Scalar]) -> bool {
    let Some(code) = compile(program, level()).unwrap() else { return false };
    let wanted = one_by_one(program, operands, numbers);
    let got = run(&code, operands, numbers).unwrap();
    for (got, wanted) in got.iter().zip(&wanted) {
        same(got, wanted, &format!("{program:?} of {operands:?} {numbers:?}"));
    }
    true
}

/// Special values and samples of all bits, as many as asked for.
pub(super) fn values(rng: &mut Rng, dtype: DType, count: usize) -> Array {
    const SPECIAL: [f64; 16] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        1e-40,
        88.7,
        -104.0,
        1e30,
        3.5e4,
        2e9,
        -7.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    dispatch!(all dtype, T => {
        let mut out = Array::uninit(dtype, &[count]).unwrap();
        for (at, slot) in out.as_mut_slice::<T>().iter_mut().enumerate() {
            *slot = match rng.below(4) {
                0 => <T as crate::Element>::from_f64(SPECIAL[at % 16]),
                1 => <T as crate::Element>::from_f64(rng.below(1 << 20) as f64 / (1 << 15) as f64 - 16.0),
                2 => <T as crate::Element>::from_i64(rng.below(9) as i64 - 4),
                _ => <T as crate::Element>::from_f64(f32::from_bits(rng.bits() as u32) as f64),
            };
        }
        out
    })
}

pub(super) fn there_is_code() -> bool {
    level() >= Level::Avx2
}

#[test]
fn every_row_of_one_operand_has_the_bits_of_its_kernel() {
    let mut rng = Rng::new(1);
    let mut count = 0;
    for row in unary::ALL {
        for dtype in DTYPES {
            for len in [1, 31, 3000] {
                let x = values(&mut rng, dtype, len);
                let chain = program(&[dtype], &[], vec![instr(row.name, &[0], row.class.result(dtype))], &[1]);
                count +=
                    usize::from((row.select)(elementwise::compute_type(dtype)).is_some() && agrees(&chain, &[&x], &[]));
            }
        }
    }
    assert!(count > 400 || !there_is_code(), "{count}");
}

#[test]
fn every_row_of_two_operands_has_the_bits_of_its_kernel_either_way_round() {
    let mut rng = Rng::new(2);
    let mut count = 0;
    for row in binary::ALL {
        for dtype in DTYPES {
            if (row.select)(elementwise::compute_type(dtype)).is_none() {
                continue;
            }
            for len in [1, 100, 3000] {
                let (a, b) = (values(&mut rng, dtype, len), values(&mut rng, dtype, len));
                let result = row.class.result(dtype);
                let number = if dtype == DType::Bool { Scalar::Bool(true) } else { Scalar::Int(3) };
                // Both in memory; one value twice; a number on either side.
                let chains = [
                    program(&[dtype; 2], &[], vec![instr(row.name, &[0, 1], result)], &[2]),
                    program(&[dtype], &[], vec![instr(row.name, &[0, 0], result)], &[1]),
                    program(&[dtype], &[dtype], vec![instr(row.name, &[0, 1], result)], &[2]),
                    program(&[dtype], &[dtype], vec![instr(row.name, &[1, 0], result)], &[2]),
                ];
                count += usize::from(agrees(&chains[0], &[&a, &b], &[]));
                count += usize::from(agrees(&chains[1], &[&a], &[]));
                count += usize::from(agrees(&chains[2], &[&a], &[number]) && agrees(&chains[3], &[&a], &[number]));
                // One in registers, from an instruction before.
                let copy = |args: [usize; 2]| {
                    let first = instr("where", &[2, 1, 0], dtype);
                    program(&[dtype, dtype, DType::Bool], &[], vec![first, instr(row.name, &args, result)], &[4])
                };
                let truth = values(&mut rng, DType::Bool, len);
                count += usize::from(agrees(&copy([0, 3]), &[&a, &b, &truth], &[]));
                count += usize::from(agrees(&copy([3, 0]), &[&a, &b, &truth], &[]));
            }
        }
    }
    assert!(count > 1000 || !there_is_code(), "{count}");
}

#[test]
fn every_cast_of_one_width_has_the_bits_of_its_kernel() {
    let mut rng = Rng::new(3);
    let mut count = 0;
    for from in DTYPES {
        for to in DTYPES {
            let x = values(&mut rng, from, 3001);
            count += usize::from(agrees(&program(&[from], &[], vec![instr("cast", &[0], to)], &[1]), &[&x], &[]));
        }
    }
    assert!(count >= 30 || !there_is_code(), "{count}");
}

/// A random program over these inputs, all of one width.
pub(super) fn random_program(rng: &mut Rng, dtypes: &[DType]) -> (Program, Vec<Scalar>) {
    let count = 1 + rng.below(4);
    let inputs: Vec<DType> = (0..count).map(|_| rng.pick(dtypes)).collect();
    let numbers: Vec<DType> = (0..rng.below(3)).map(|_| rng.pick(dtypes)).collect();
    let scalars =
        numbers.iter().map(|dtype| if *dtype == DType::Bool { Scalar::Bool(true) } else { Scalar::Int(2) }).collect();
    let mut types = [&inputs[..], &numbers[..]].concat();
    let mut instrs = Vec::new();
    let first = types.len();
    let wanted = 1 + rng.below(20);
    while instrs.len() < wanted {
        // The last values more often, and no number alone.
        let pick = |rng: &mut Rng| {
            if rng.below(2) == 0 { types.len() - 1 - rng.below(types.len().min(3)) } else { rng.below(types.len()) }
        };
        let (a, b) = (pick(rng), pick(rng));
        let is_number = |at: usize| (inputs.len()..first).contains(&at);
        let made = match rng.below(5) {
            0 if !is_number(a) => instr("cast", &[a], rng.pick(dtypes)),
            1 if types[a] != DType::Bool && !is_number(a) && first > inputs.len() && types[first - 1] == types[a] => {
                instr("clip", &[a, first - 1, first - 1], types[a])
            }
            2 => {
                let Some(c) = (0..types.len()).rev().find(|&c| types[c] == DType::Bool && !is_number(c)) else {
                    continue;
                };
                if types[a] != types[b] || (is_number(a) && is_number(b)) {
                    continue;
                }
                instr("where", &[c, a, b], types[a])
            }
            3 if !is_number(a) => {
                let row = rng.pick(unary::ALL);
                if (row.select)(elementwise::compute_type(types[a])).is_none() {
                    continue;
                }
                instr(row.name, &[a], row.class.result(types[a]))
            }
            4 if types[a] == types[b] && !(is_number(a) && is_number(b)) => {
                let row = rng.pick(binary::ALL);
                let float_only = ["divide", "pow"].contains(&row.name) && !types[a].is_float();
                if float_only || (row.select)(elementwise::compute_type(types[a])).is_none() {
                    continue;
                }
                instr(row.name, &[a, b], row.class.result(types[a]))
            }
            _ => continue,
        };
        types.push(made.dtype);
        instrs.push(made);
    }
    let mut outputs: Vec<usize> = (first..types.len()).filter(|_| rng.below(4) == 0).collect();
    outputs.push(types.len() - 1);
    outputs.dedup();
    (program(&inputs, &numbers, instrs, &outputs), scalars)
}

#[test]
fn random_programs_over_any_layout_have_the_bits_of_their_ops() {
    let mut rng = Rng::new(4);
    threads::set_num_threads(3);
    let mut count = 0;
    for round in 0..600 {
        let dtypes: &[DType] = match round % 3 {
            0 => &[DType::F32, DType::F32, DType::I32, DType::Bool, DType::F16, DType::BF16],
            1 => &[DType::F64, DType::I64, DType::Bool],
            _ => &[DType::F32],
        };
        let (chain, numbers) = random_program(&mut rng, dtypes);
        let shape: Vec<usize> = match rng.below(4) {
            0 => vec![rng.below(40_000)],
            1 => vec![rng.below(5), rng.below(300), 1 + rng.below(5)],
            2 => vec![1 + rng.below(9), 1 + rng.below(600)],
            _ => (0..rng.below(5)).map(|_| 1 + rng.below(6)).collect(),
        };
        let operands: Vec<Array> = chain
            .inputs
            .iter()
            .map(|&dtype| {
                let own: Vec<usize> = match rng.below(6) {
                    0 => shape.iter().map(|&n| if rng.below(2) == 0 { 1 } else { n }).collect(),
                    1 if !shape.is_empty() => shape[1..].to_vec(),
                    _ => shape.clone(),
                };
                if rng.below(2) == 0 {
                    crate::ops::samples::dense(&mut rng, dtype, &own, true)
                } else {
                    view_of(&mut rng, dtype, &own, true)
                }
            })
            .collect();
        // Every input counts toward the shape of the results, so the ops have to use it too.
        let arrays: Vec<&Array> = operands.iter().collect();
        let to = arrays
            .iter()
            .fold(crate::array::shape::Shape::empty(), |to, x| crate::array::shape::broadcast(&to, x.shape()).unwrap());
        let whole: Vec<Array> = arrays.iter().map(|x| crate::array::view::broadcast_to(x, &to).unwrap()).collect();
        let spread: Vec<&Array> = whole.iter().collect();
        if let Some(code) = compile(&chain, level()).unwrap() {
            count += 1;
            let wanted = one_by_one(&chain, &spread, &numbers);
            for (got, wanted) in run(&code, &arrays, &numbers).unwrap().iter().zip(&wanted) {
                same(&one_nan(got), &one_nan(wanted), &format!("{chain:?} of {arrays:?} {numbers:?}"));
            }
        }
    }
    assert!(count > 500 || !there_is_code(), "{count}");
}

#[test]
fn a_long_program_needs_little_stack() {
    let instrs: Vec<Instr> =
        (0..64).map(|at| instr(if at % 2 == 0 { "sin" } else { "gelu" }, &[at], DType::F32)).collect();
    let chain = program(&[DType::F32], &[], instrs, &[64]);
    let Some(code) = compile(&chain, level()).unwrap() else { return };
    let work = move || {
        let x = Array::from_slice(&[0.5f32; 1000], &[1000]).unwrap();
        run(&code, &[&x], &[]).unwrap()[0].numel()
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap();
    assert_eq!(thread.join().unwrap(), 1000);
}

#[test]
fn many_blocks_of_a_program_need_little_stack() {
    let instrs = vec![instr("sin", &[0], DType::F32), instr("softplus", &[1], DType::F32)];
    let Some(code) = compile(&program(&[DType::F32], &[], instrs, &[2]), level()).unwrap() else { return };
    let work = move || {
        let x = Array::from_slice(&vec![0.5f32; 100_000], &[100_000]).unwrap();
        run(&code, &[&x], &[]).unwrap()[0].numel()
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap();
    assert_eq!(thread.join().unwrap(), 100_000);
}

#[test]
fn what_is_no_program_is_refused() {
    let add = |args: &[usize]| vec![instr("add", args, DType::F32)];
    let wrong = |chain: Program| matches!(compile(&chain, level()), Err(Error::Value(_)));
    assert!(wrong(program(&[DType::F32], &[], add(&[0, 1]), &[1])));
    assert!(wrong(program(&[DType::F32], &[], add(&[0, 0]), &[0])));
    assert!(wrong(program(&[DType::F32], &[], add(&[0, 0]), &[])));
    assert!(wrong(program(&[], &[DType::F32], add(&[0, 0]), &[1])));
    let none = |chain: Program| compile(&chain, level()).unwrap().is_none();
    assert!(none(program(&[DType::F32], &[], vec![instr("no such op", &[0], DType::F32)], &[1])));
    assert!(none(program(&[DType::F32; 2], &[], vec![instr("add", &[0, 1], DType::Bool)], &[2])));
    assert!(none(program(&[DType::F32, DType::F64], &[], add(&[0, 0]), &[2])));
    assert!(none(program(&[DType::I32; 2], &[], vec![instr("pow", &[0, 1], DType::I32)], &[2])));
    if let Some(code) = compile(&program(&[DType::F32], &[], add(&[0, 0]), &[1]), level()).unwrap() {
        let x = Array::zeros(DType::I32, &[3]).unwrap();
        assert!(matches!(run(&code, &[&x], &[]), Err(Error::Rejected(_))));
        assert!(matches!(run(&code, &[], &[]), Err(Error::Rejected(_))));
    }
}

//! Programs with folds against the ops one by one, bit for bit.

use crate::array::scalar::Scalar;
use crate::array::shape::{Shape, broadcast};
use crate::array::view::broadcast_to;
use crate::array::{Array, view};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::simd::level;
use crate::machine::threads;
use crate::ops::program::data::{Instr, Program};
use crate::ops::program::stages::{Folds, staged};
use crate::ops::program::tests::{instr, one_nan, program, random_program, same, there_is_code};
use crate::ops::program::{compile, run, run_stages};
use crate::ops::reduction;
use crate::ops::samples::{Rng, dense, view_of};

fn folded(name: &str, x: &Array, inner: usize) -> Result<Array> {
    let axes: Vec<usize> = (x.rank() - inner..x.rank()).collect();
    match name {
        "sum" => reduction::sum(x, &axes, true, x.dtype()),
        "mean" => reduction::mean(x, &axes, true),
        "prod" => reduction::prod(x, &axes, true, x.dtype()),
        "max" => reduction::max(x, &axes, true),
        _ => reduction::min(x, &axes, true),
    }
}

const FOLDS: [&str; 5] = ["sum", "mean", "prod", "max", "min"];

/// What the ops give one by one; each map as a program of its own, which other tests compare with the row kernels.
fn one_by_one(folds: &Folds, operands: &[&Array], numbers: &[Scalar]) -> Vec<Array> {
    let program = &folds.program;
    let (inputs, first) = (program.inputs.len(), program.inputs.len() + program.numbers.len());
    let to = operands.iter().fold(Shape::empty(), |to, x| broadcast(&to, x.shape()).unwrap());
    let mut made: Vec<Array> = Vec::new();
    for each in &program.instrs {
        let array = |at: usize| if at < inputs { operands[at] } else { &made[at - first] };
        let out = if FOLDS.contains(&&*each.op) {
            folded(&each.op, &broadcast_to(array(each.args[0]), &to).unwrap(), folds.inner).unwrap()
        } else {
            let is_number = |at: usize| (inputs..first).contains(&at);
            let own: Vec<usize> = each.args.iter().copied().filter(|&at| !is_number(at)).collect();
            let own_numbers: Vec<usize> = each.args.iter().copied().filter(|&at| is_number(at)).collect();
            let place = |at: usize| match own.iter().position(|&own| own == at) {
                Some(found) => found,
                None => own.len() + own_numbers.iter().position(|&own| own == at).unwrap(),
            };
            let args: Vec<usize> = each.args.iter().map(|&at| place(at)).collect();
            let dtype = |at: usize| match at {
                _ if at < inputs => program.inputs[at],
                _ if at < first => program.numbers[at - inputs],
                _ => program.instrs[at - first].dtype,
            };
            let types: Vec<DType> = own.iter().map(|&at| dtype(at)).collect();
            let number_types: Vec<DType> = own_numbers.iter().map(|&at| dtype(at)).collect();
            let only = vec![instr(&each.op, &args, each.dtype)];
            let chain =
                crate::ops::program::tests::program(&types, &number_types, only, &[own.len() + own_numbers.len()]);
            let code = compile(&chain, level()).unwrap().unwrap();
            let given: Vec<&Array> = own.iter().map(|&at| array(at)).collect();
            let scalars: Vec<Scalar> = own_numbers.iter().map(|&at| numbers[at - inputs]).collect();
            run(&code, &given, &scalars).unwrap().remove(0)
        };
        made.push(out);
    }
    program.outputs.iter().map(|&at| made[at - first].clone()).collect()
}

/// Compares a program with its ops; false where there is no code for it.
fn agrees(folds: &Folds, operands: &[&Array], numbers: &[Scalar]) -> bool {
    let Some(stages) = staged(folds, level()).unwrap() else { return false };
    let wanted = one_by_one(folds, operands, numbers);
    let to = operands.iter().fold(Shape::empty(), |to, x| broadcast(&to, x.shape()).unwrap());
    let mut kept = to;
    let rank = to.len();
    (rank - folds.inner..rank).for_each(|axis| kept[axis] = 1);
    let got = run_stages(&stages, operands, numbers).unwrap();
    for ((got, wanted), (_, row)) in got.iter().zip(&wanted).zip(&stages.outputs) {
        let full = if row.is_some() { kept } else { to };
        let wanted = broadcast_to(wanted, &full).unwrap();
        let got = if folds.keepdims { got.clone() } else { view::reshape(got, &full).unwrap() };
        same(&one_nan(&got), &one_nan(&wanted), &format!("{folds:?} of {operands:?} {numbers:?}"));
    }
    true
}

fn of(program: Program, inner: usize, rows: &[usize]) -> Folds {
    Folds { program, inner, keepdims: true, rows: rows.to_vec() }
}

fn softmax(dtype: DType) -> Folds {
    let instrs = vec![
        instr("max", &[0], dtype),
        instr("subtract", &[0, 1], dtype),
        instr("exp", &[2], dtype),
        instr("sum", &[3], dtype),
        instr("divide", &[3, 4], dtype),
    ];
    of(program(&[dtype], &[], instrs, &[5]), 1, &[])
}

fn layer_norm(dtype: DType) -> Folds {
    let instrs = vec![
        instr("mean", &[0], dtype),
        instr("subtract", &[0, 4], dtype),
        instr("square", &[5], dtype),
        instr("mean", &[6], dtype),
        instr("add", &[7, 3], dtype),
        instr("sqrt", &[8], dtype),
        instr("divide", &[5, 9], dtype),
        instr("multiply", &[10, 1], dtype),
        instr("add", &[11, 2], dtype),
    ];
    of(program(&[dtype; 3], &[dtype], instrs, &[12, 4, 9]), 1, &[])
}

#[test]
fn softmax_and_layer_norm_have_the_bits_of_their_ops_at_any_length() {
    let mut rng = Rng::new(11);
    threads::set_num_threads(3);
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for (rows, len) in [(1, 1), (7, 3), (300, 17), (5, 128), (9, 1000), (3, 5000), (2, 40_000), (1, 33_000)] {
            let x = dense(&mut rng, dtype, &[rows, len], false);
            let (scale, shift) = (dense(&mut rng, dtype, &[len], false), dense(&mut rng, dtype, &[len], false));
            assert!(agrees(&softmax(dtype), &[&x], &[]) || !there_is_code());
            let tiny = [Scalar::Float(1e-5)];
            assert!(agrees(&layer_norm(dtype), &[&x, &scale, &shift], &tiny) || !there_is_code());
        }
    }
}

#[test]
fn what_is_folded_at_once_may_be_folded_twice_and_lie_beside_results() {
    let mut rng = Rng::new(12);
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let pairs = vec![
            instr("subtract", &[0, 1], dtype),
            instr("exp", &[2], dtype),
            instr("sum", &[3], dtype),
            instr("max", &[3], dtype),
            instr("add", &[4, 5], dtype),
        ];
        for outputs in [&[6][..], &[4, 5], &[2, 6], &[3, 6]] {
            let folds = of(program(&[dtype; 2], &[], pairs.clone(), outputs), 1, &[0]);
            for (rows, len) in [(1, 2049), (5, 4096), (3, 7001), (2, 40_000)] {
                let (x, y) = (dense(&mut rng, dtype, &[rows, 1], false), dense(&mut rng, dtype, &[len], false));
                assert!(agrees(&folds, &[&x, &y], &[]) || !there_is_code());
            }
        }
    }
}

/// A random program with folds after some of its instructions, and maps behind them.
fn random_folds(rng: &mut Rng, dtypes: &[DType], inner: usize) -> (Folds, Vec<Scalar>) {
    let (mut chain, numbers) = random_program(rng, dtypes);
    let first = chain.inputs.len() + chain.numbers.len();
    let rows: Vec<usize> = (1..chain.inputs.len()).filter(|_| rng.below(4) == 0).collect();
    let mut types = [&chain.inputs[..], &chain.numbers[..]].concat();
    let mut full: Vec<bool> = (0..first).map(|at| at < chain.inputs.len() && !rows.contains(&at)).collect();
    let (old, mut names) = (std::mem::take(&mut chain.instrs), (0..first).collect::<Vec<usize>>());
    let put = |instrs: &mut Vec<Instr>, types: &mut Vec<DType>, full: &mut Vec<bool>, each: Instr, is_full: bool| {
        types.push(each.dtype);
        full.push(is_full);
        instrs.push(each);
        types.len() - 1
    };
    for each in old {
        let args: Vec<usize> = each.args.iter().map(|&arg| names[arg]).collect();
        let is_full = args.iter().any(|&arg| full[arg]);
        let mut name = put(&mut chain.instrs, &mut types, &mut full, instr(&each.op, &args, each.dtype), is_full);
        let foldable = matches!(each.dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16 | DType::I64);
        if is_full && foldable && rng.below(3) == 0 {
            let op = match each.dtype {
                DType::I64 => rng.pick(&["sum", "max", "min", "prod"]),
                dtype if dtype.itemsize() == 2 => rng.pick(&["sum", "mean", "max", "min"]),
                _ => rng.pick(&FOLDS),
            };
            let fold = put(&mut chain.instrs, &mut types, &mut full, instr(op, &[name], each.dtype), false);
            name = match rng.below(3) {
                0 => name,
                1 => fold,
                _ => put(&mut chain.instrs, &mut types, &mut full, instr("maximum", &[name, fold], each.dtype), true),
            };
        }
        names.push(name);
    }
    let fold = instr("sum", &[0], types[0]);
    if matches!(types[0], DType::F32 | DType::F64 | DType::I64) {
        put(&mut chain.instrs, &mut types, &mut full, fold, false);
    }
    chain.outputs = (first..types.len()).filter(|_| rng.below(3) == 0).collect();
    chain.outputs.push(types.len() - 1);
    chain.outputs.dedup();
    (Folds { program: chain, inner, keepdims: rng.below(2) == 0, rows }, numbers)
}

#[test]
fn random_programs_with_folds_over_any_layout_have_the_bits_of_their_ops() {
    let mut rng = Rng::new(12);
    threads::set_num_threads(3);
    let mut count = 0;
    for round in 0..600 {
        let dtypes: &[DType] = match round % 3 {
            0 => &[DType::F32, DType::F32, DType::I32, DType::Bool, DType::F16, DType::BF16],
            1 => &[DType::F64, DType::I64, DType::Bool],
            _ => &[DType::F32],
        };
        let shape: Vec<usize> = match rng.below(5) {
            0 => vec![1 + rng.below(3), 1 + rng.below(40_000)],
            1 => vec![1 + rng.below(5), 1 + rng.below(300), 1 + rng.below(5)],
            2 => vec![1 + rng.below(9), 1 + rng.below(3000)],
            3 => vec![1 + rng.below(400), 1 + rng.below(40)],
            _ => (0..=rng.below(4)).map(|_| 1 + rng.below(6)).collect(),
        };
        let inner = 1 + rng.below(shape.len());
        let (folds, numbers) = random_folds(&mut rng, dtypes, inner);
        let outer = shape.len() - inner;
        let operand = |rng: &mut Rng, at: usize, dtype: DType| {
            let mut own = shape.clone();
            if folds.rows.contains(&at) {
                own[outer..].fill(1);
            }
            if at > 0 && rng.below(4) == 0 {
                for len in &mut own {
                    *len = if rng.below(2) == 0 { 1 } else { *len };
                }
            }
            if rng.below(2) == 0 { dense(rng, dtype, &own, true) } else { view_of(rng, dtype, &own, true) }
        };
        let operands: Vec<Array> =
            folds.program.inputs.iter().enumerate().map(|(at, &dtype)| operand(&mut rng, at, dtype)).collect();
        let arrays: Vec<&Array> = operands.iter().collect();
        count += usize::from(agrees(&folds, &arrays, &numbers));
    }
    assert!(count > 400 || !there_is_code(), "{count}");
}

#[test]
fn what_has_nothing_to_fold_is_refused() {
    let sum = || vec![instr("sum", &[0], DType::F32)];
    let wrong = |folds: Folds| matches!(staged(&folds, level()), Err(Error::Value(_)));
    assert!(wrong(of(program(&[DType::F32], &[], sum(), &[1]), 0, &[])));
    assert!(wrong(of(program(&[DType::F32], &[], sum(), &[0]), 1, &[])));
    assert!(wrong(of(program(&[DType::F32], &[], vec![instr("sum", &[1], DType::F32)], &[1]), 1, &[])));
    let none = |folds: Folds| staged(&folds, level()).unwrap().is_none();
    assert!(none(of(program(&[DType::F32], &[], sum(), &[1]), 1, &[0])));
    assert!(none(of(program(&[DType::I32], &[], vec![instr("sum", &[0], DType::I64)], &[1]), 1, &[])));
    if let Some(stages) = staged(&softmax(DType::F32), level()).unwrap() {
        for shape in [&[0, 3][..], &[3, 0], &[]] {
            let x = Array::zeros(DType::F32, shape).unwrap();
            assert!(matches!(run_stages(&stages, &[&x], &[]), Err(Error::Rejected(_))));
        }
        let x = Array::zeros(DType::F64, &[3, 3]).unwrap();
        assert!(matches!(run_stages(&stages, &[&x], &[]), Err(Error::Rejected(_))));
    }
}

//! Programs that draw random numbers against the ops, bit for bit.

use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::dtype::DType;
use crate::machine::simd::level;
use crate::machine::threads;
use crate::ops::elementwise::kernel::{binary, unary};
use crate::ops::elementwise::{self, Operand, choice};
use crate::ops::program::code::compile;
use crate::ops::program::data::Program;
use crate::ops::program::tests::{instr, program, same, there_is_code, values};
use crate::ops::program::{Folds, run, staged};
use crate::ops::random::{Law, Stream};
use crate::ops::samples::Rng;

const FLOATS: [DType; 4] = [DType::BF16, DType::F16, DType::F32, DType::F64];
const KEY: u64 = 0xfedc_ba98_7654_3210;
const COUNTER: u64 = u64::MAX - 5;

/// A program of a source and what drops: `where(u < n, x, n)`, and `exp` of the values that are kept.
fn dropping(op: &str, dtype: DType) -> Program {
    let instrs = vec![
        instr(op, &[1, 2, 3, 4], dtype),
        instr("less", &[6, 5], DType::Bool),
        instr("where", &[7, 0, 5], dtype),
        instr("exp", &[8], dtype),
    ];
    program(&[dtype], &[DType::F64, DType::F64, DType::U64, DType::U64, dtype], instrs, &[9, 7])
}

fn numbers() -> [Scalar; 5] {
    [Scalar::Float(-0.25), Scalar::Float(1.5), Scalar::Uint(KEY), Scalar::Uint(COUNTER), Scalar::Float(0.5)]
}

/// What the ops give, one after the other.
fn one_by_one(op: &str, x: &Array, shape: &[usize]) -> [Array; 2] {
    let law = Law::of(op).unwrap();
    let stream = Stream { law, dtype: x.dtype(), first: -0.25, second: 1.5, key: KEY, counter: COUNTER };
    let drawn = stream.array(shape).unwrap();
    let (less, exp) = (
        binary::ALL.iter().find(|row| row.name == "less").unwrap(),
        unary::ALL.iter().find(|row| row.name == "exp").unwrap(),
    );
    let half = Operand::Scalar(Scalar::Float(0.5));
    let keep = elementwise::binary(less, Operand::Array(&drawn), half).unwrap();
    let kept = choice::select(Operand::Array(&keep), Operand::Array(x), half).unwrap();
    [elementwise::unary(exp, &kept).unwrap(), keep]
}

#[test]
fn what_a_program_draws_has_the_bits_of_the_op() {
    let mut rng = Rng::new(11);
    for op in ["random_normal", "random_uniform"] {
        for dtype in FLOATS {
            let Some(code) = compile(&dropping(op, dtype), level()).unwrap() else {
                assert!(!there_is_code(), "{op} {dtype:?}");
                continue;
            };
            for len in [0, 1, 2, 31, 33, 127, 129, 5003] {
                let x = values(&mut rng, dtype, len);
                let got = run(&code, &[&x], &numbers()).unwrap();
                for (got, wanted) in got.iter().zip(&one_by_one(op, &x, &[len])) {
                    same(got, wanted, &format!("{op} {dtype:?} {len}"));
                }
            }
        }
    }
}

#[test]
fn places_are_those_of_rows_whatever_the_layout() {
    let mut rng = Rng::new(12);
    let Some(code) = compile(&dropping("random_uniform", DType::F32), level()).unwrap() else {
        assert!(!there_is_code());
        return;
    };
    let (rows, columns) = (67, 41);
    let x = values(&mut rng, DType::F32, rows * columns);
    let turned = x.with_geometry(&[rows, columns], &[1, rows as isize], 0).unwrap();
    let spread = x.with_geometry(&[rows, columns], &[columns as isize, 0], 0).unwrap();
    let back = x.with_geometry(&[rows, columns], &[columns as isize, -1], columns - 1).unwrap();
    for (name, x) in [("turned", &turned), ("spread", &spread), ("back", &back)] {
        let got = run(&code, &[x], &numbers()).unwrap();
        for (got, wanted) in got.iter().zip(&one_by_one("random_uniform", x, &[rows, columns])) {
            same(got, wanted, name);
        }
    }
}

#[test]
fn draws_do_not_depend_on_threads() {
    let mut rng = Rng::new(13);
    let Some(code) = compile(&dropping("random_normal", DType::F32), level()).unwrap() else {
        assert!(!there_is_code());
        return;
    };
    let x = values(&mut rng, DType::F32, 150_001);
    let wanted = one_by_one("random_normal", &x, &[150_001]);
    for count in 1..=4 {
        threads::set_num_threads(count);
        for (got, wanted) in run(&code, &[&x], &numbers()).unwrap().iter().zip(&wanted) {
            same(got, wanted, &format!("{count} threads"));
        }
    }
}

#[test]
fn there_is_no_code_where_what_is_drawn_is_a_result_or_folded() {
    let types = [DType::F64, DType::F64, DType::U64, DType::U64];
    let drawn = instr("random_uniform", &[1, 2, 3, 4], DType::F32);
    let alone = program(&[DType::F32], &types, vec![drawn.clone()], &[5]);
    assert!(compile(&alone, level()).unwrap().is_none());
    let sum = vec![drawn, instr("add", &[0, 5], DType::F32), instr("sum", &[6], DType::F32)];
    let folded = Folds { program: program(&[DType::F32], &types, sum, &[7]), inner: 1, keepdims: true, rows: vec![] };
    assert!(staged(&folded, level()).unwrap().is_none());
}

//! The gradient of attention as an op. That of a bias which was broadcast is summed from the cotangents of all scores:
//! those of some heads at a time, so that no more of them are ever in memory.

#[cfg(target_arch = "x86_64")]
use super::amx;
use super::backward::{self, Cotangents};
use super::heads::Heads;
use super::{Job, Operands, Settings, check};
use crate::array::Array;
use crate::array::copy;
use crate::array::shape::{Shape, numel};
use crate::array::view;
use crate::dtype::{BF16, DType, F16};
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::machine::amx::Processor;
use crate::ops::elementwise::convert::cast;
use crate::ops::elementwise::kernel::binary::add;
use crate::ops::elementwise::{Operand, binary};
use crate::ops::movement::concat;
use crate::ops::parts::{self, narrowed};
use crate::ops::reduction;

/// Bytes of scores whose cotangents are held at a time: some heads for both threads, half of a third-level cache.
const SCORES: usize = 8 * parts::PART;

/// Cotangents of [`attention`](super::attention) for query, key, value and bias; that of an absent bias is empty.
pub fn attention_backward(
    g: &Array,
    operands: Operands<'_>,
    settings: Settings,
) -> Result<(Array, Array, Array, Array)> {
    check(&operands)?;
    let Operands { query, key, value, bias, .. } = operands;
    let (dtype, rank) = (query.dtype(), query.rank());
    let mut shape = *query.shape();
    shape[rank - 1] = value.shape()[rank - 1];
    if g.dtype() != dtype || g.shape()[..] != shape[..] {
        return Err(Error::Rejected("attention_backward wants a cotangent of the result's shape and dtype"));
    }
    let empty = [0];
    let bias_shape = bias.map_or(&empty[..], |bias| &bias.shape()[..]);
    if g.numel() == 0 || key.shape()[rank - 2] == 0 {
        let zeros = |x: &Array| Array::zeros(dtype, x.shape());
        return Ok((zeros(query)?, zeros(key)?, zeros(value)?, Array::zeros(dtype, bias_shape)?));
    }
    let like = |x: &Array| Array::uninit(dtype, x.shape());
    let mut out = [like(query)?, like(key)?, like(value)?];
    let dbias = match bias {
        Some(bias) if numel(bias.shape()) < numel(&scores_shape(&operands)) => {
            in_parts(g, operands, settings, &mut out)?
        }
        _ => whole(g, operands, settings, &mut out)?,
    };
    let [dquery, dkey, dvalue] = out;
    let dbias = match dbias {
        None => Array::zeros(dtype, bias_shape)?,
        Some(dbias) => cast(&dbias, dtype)?,
    };
    Ok((dquery, dkey, dvalue, dbias))
}

fn scores_shape(operands: &Operands<'_>) -> Shape {
    let mut shape = *operands.query.shape();
    let rank = shape.len();
    shape[rank - 1] = operands.key.shape()[rank - 2];
    shape
}

/// Fills the cotangents of query, key and value. The result is that of the bias in the type that sums are computed in.
fn whole(g: &Array, operands: Operands<'_>, settings: Settings, out: &mut [Array; 3]) -> Result<Option<Array>> {
    let dtype = g.dtype();
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut scores = operands.bias.map(|_| Array::uninit(wide, &scores_shape(&operands))).transpose()?;
    let [query, key, value] = out;
    let out = Cotangents { query, key, value, scores: scores.as_mut() };
    match dtype {
        DType::F16 => backward::run(&Job::<F16>::new(operands, settings), &Heads::new(g, g.shape()), out)?,
        DType::BF16 => bfloat16(&Job::new(operands, settings), &Heads::new(g, g.shape()), out)?,
        DType::F64 => backward::run(&Job::<f64>::new(operands, settings), &Heads::new(g, g.shape()), out)?,
        _ => backward::run(&Job::<f32>::new(operands, settings), &Heads::new(g, g.shape()), out)?,
    }
    scores.zip(operands.bias).map(|(scores, bias)| summed_to(&scores, bias.shape())).transpose()
}

/// By tiles, where there is a unit for them, and many queries and keys.
fn bfloat16(job: &Job<BF16>, g: &Heads<BF16>, out: Cotangents<'_>) -> Result<()> {
    #[cfg(target_arch = "x86_64")]
    if amx::pulls(job) {
        return amx::pull::<Processor>(job, g, out);
    }
    backward::run(job, g, out)
}

/// [`whole`] for some images or some heads of keys at a time, where the scores are large.
fn in_parts(g: &Array, operands: Operands<'_>, settings: Settings, out: &mut [Array; 3]) -> Result<Option<Array>> {
    let Operands { query, key, value, mask, bias } = operands;
    let shape = scores_shape(&operands);
    let bytes = numel(&shape) * g.dtype().itemsize().max(DType::F32.itemsize());
    let axis = (0..shape.len() - 2).find(|&axis| key.shape()[axis] > 1);
    let (Some(axis), Some(bias), true) = (axis, bias, bytes > SCORES) else {
        return whole(g, operands, settings, out);
    };
    let (count, group) = (key.shape()[axis], shape[axis] / key.shape()[axis]);
    // The axis of a mask or a bias, where it was not broadcast along it.
    let own = |x: &Array| (axis + x.rank()).checked_sub(shape.len()).filter(|&axis| x.shape()[axis] != 1);
    let mut sums: Vec<Array> = Vec::new();
    for range in parts::ranges(count, bytes, SCORES) {
        let of_queries = range.start * group..range.end * group;
        let change = |x: &Array| own(x).map_or_else(|| Ok(x.clone()), |axis| narrowed(x, axis, &of_queries));
        let (part_g, query) = (narrowed(g, axis, &of_queries)?, narrowed(query, axis, &of_queries)?);
        let (key, value) = (narrowed(key, axis, &range)?, narrowed(value, axis, &range)?);
        let (mask, part_bias) = (mask.map(change).transpose()?, change(bias)?);
        let part = Operands { query: &query, key: &key, value: &value, mask: mask.as_ref(), bias: Some(&part_bias) };
        let like = |x: &Array| Array::uninit(g.dtype(), x.shape());
        let mut made = [like(&query)?, like(&key)?, like(&value)?];
        let dbias = in_parts(&part_g, part, settings, &mut made)?.expect("there is a bias");
        for ((out, made), range) in out.iter_mut().zip(&made).zip([&of_queries, &range, &range]) {
            // SAFETY: nobody else has seen the result.
            unsafe { copy::put(made, &narrowed(out, axis, range)?) };
        }
        match sums.pop() {
            Some(sum) if own(bias).is_none() => {
                sums.push(binary(&add, Operand::Array(&sum), Operand::Array(&dbias))?);
            }
            before => sums.extend(before.into_iter().chain([dbias])),
        }
    }
    match own(bias) {
        Some(axis) => concat(&sums.iter().collect::<Vec<_>>(), axis).map(Some),
        None => Ok(sums.pop()),
    }
}

/// The sum over the axes along which `to` was broadcast.
pub(super) fn summed_to(x: &Array, to: &[usize]) -> Result<Array> {
    let extra = x.rank() - to.len();
    let mut axes = Shape::empty();
    for (axis, &n) in x.shape().iter().enumerate() {
        if axis < extra || to[axis - extra] != n {
            axes.push(axis);
        }
    }
    let sum = if axes.is_empty() { x.clone() } else { reduction::sum(x, &axes, true, x.dtype())? };
    view::reshape(&sum, to)
}

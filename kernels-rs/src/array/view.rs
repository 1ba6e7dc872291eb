//! Views: other geometries over the same storage.

use crate::array::Array;
use crate::array::axes::Axis;
use crate::array::shape::{self, Shape, Strides};
use crate::error::{Error, Result};
use crate::memory::scratch::reserved;

/// Another shape with the same number of elements: a view where the layout allows it, else a copy.
pub fn reshape(x: &Array, to: &[usize]) -> Result<Array> {
    shape::check_rank(to.len())?;
    if shape::checked_numel(to)? != x.numel() {
        return Err(Error::value(
            "reshape",
            format!("wrong element count: got {to:?}, expected {} elements", x.numel()),
        ));
    }
    if let Some(strides) = reshaped_strides(x.shape(), x.strides(), to) {
        return x.with_geometry(to, &strides, x.offset());
    }
    let dense = x.contiguous()?;
    dense.with_geometry(to, &shape::contiguous_strides(to), dense.offset())
}

/// Strides for the new shape over the same elements in the same order, where they exist.
fn reshaped_strides(old: &[usize], strides: &[isize], to: &[usize]) -> Option<Strides> {
    if shape::is_contiguous(old, strides) {
        return Some(shape::contiguous_strides(to));
    }
    let kept: Vec<(usize, isize)> = old.iter().copied().zip(strides.iter().copied()).filter(|&(n, _)| n != 1).collect();
    let mut out = Strides::filled(0, to.len());
    let (mut i, mut j) = (0, 0);
    while j < to.len() {
        if to[j] == 1 {
            j += 1;
            continue;
        }
        let (first_old, first_new) = (i, j);
        let (mut count_old, mut count_new) = (kept.get(i)?.0, to[j]);
        i += 1;
        j += 1;
        while count_old != count_new {
            if count_new < count_old {
                count_new *= to.get(j)?;
                j += 1;
            } else {
                count_old *= kept.get(i)?.0;
                i += 1;
            }
        }
        // The old axes of the group must be one run.
        if kept[first_old..i].windows(2).any(|pair| !pair[0].spans(&pair[1])) {
            return None;
        }
        let mut step = kept[i - 1].1;
        for axis in (first_new..j).rev() {
            out[axis] = step;
            step *= to[axis] as isize;
        }
    }
    Some(out)
}

/// Axis `k` of the result is axis `axes[k]` of `x`.
pub fn permute_dims(x: &Array, axes: &[usize]) -> Result<Array> {
    let rank = x.rank();
    let mut seen = [false; shape::MAX_RANK];
    let valid = axes.len() == rank && axes.iter().all(|&axis| axis < rank && !std::mem::replace(&mut seen[axis], true));
    if !valid {
        return Err(Error::value("permute_dims", format!("wrong axes: got {axes:?}, expected an order of 0..{rank}")));
    }
    let (mut new, mut strides) = (Shape::empty(), Strides::empty());
    for &axis in axes {
        new.push(x.shape()[axis]);
        strides.push(x.strides()[axis]);
    }
    x.with_geometry(&new, &strides, x.offset())
}

/// Element `k` along an axis is `x[start + k * step]`, `size` of them.
pub fn slice(x: &Array, start: &[usize], size: &[usize], step: &[isize]) -> Result<Array> {
    let rank = x.rank();
    if start.len() != rank || size.len() != rank || step.len() != rank {
        return Err(Error::value("slice", format!("wrong rank: got {} starts, expected {rank}", start.len())));
    }
    let (mut new, mut strides) = (Shape::empty(), Strides::empty());
    let mut offset = x.offset() as isize;
    let empty = size.contains(&0) || x.numel() == 0;
    for axis in 0..rank {
        let n = x.shape()[axis];
        if size[axis] > 0 {
            let steps = (size[axis] - 1) as i128 * step[axis] as i128;
            let last = start[axis] as i128 + steps;
            if start[axis] >= n || last < 0 || last >= n as i128 {
                let got = format!("start {} size {} step {}", start[axis], size[axis], step[axis]);
                return Err(Error::value("slice", format!("outside axis {axis}: got {got}, expected within {n}")));
            }
        }
        new.push(size[axis]);
        // A step that is never taken stays as it was: any other number could overflow.
        strides.push(if empty || size[axis] < 2 { x.strides()[axis] } else { x.strides()[axis] * step[axis] });
        if !empty {
            offset += start[axis] as isize * x.strides()[axis];
        }
    }
    x.with_geometry(&new, &strides, offset as usize)
}

/// Stretches axes of length 1 and adds leading axes.
pub fn broadcast_to(x: &Array, to: &[usize]) -> Result<Array> {
    let new = shape::broadcast(x.shape(), to)?;
    if new[..] != *to {
        return Err(Error::value("broadcast_to", format!("cannot broadcast: got {:?}, expected {to:?}", x.shape())));
    }
    let strides = shape::broadcast_strides(x.shape(), x.strides(), to);
    x.with_geometry(&new, &strides, x.offset())
}

/// Reverses the given axes.
pub fn flip(x: &Array, axes: &[usize]) -> Result<Array> {
    let mut strides = *x.strides();
    let mut offset = x.offset() as isize;
    for &axis in axes {
        if axis >= x.rank() {
            return Err(Error::value("flip", format!("wrong axis: got {axis}, expected < {}", x.rank())));
        }
        if x.numel() > 0 {
            offset += (x.shape()[axis] - 1) as isize * strides[axis];
        }
        strides[axis] = -strides[axis];
    }
    x.with_geometry(x.shape(), &strides, offset as usize)
}

/// At most `chunks` parts along an axis, equal but for the last.
pub fn chunk(x: &Array, chunks: usize, axis: usize) -> Result<Vec<Array>> {
    let (_, len, _) = shape::around("chunk", x.shape(), axis)?;
    if chunks == 0 {
        return Err(Error::value("chunk", "no parts: expected chunks >= 1"));
    }
    let size = len.div_ceil(chunks).max(1);
    parts(x, (0..len.div_ceil(size).max(1)).map(|part| size.min(len - part * size)), axis)
}

/// Parts of these sizes along an axis, which add up to it.
pub fn split(x: &Array, sizes: &[usize], axis: usize) -> Result<Vec<Array>> {
    let (_, len, _) = shape::around("split", x.shape(), axis)?;
    if sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)) != Some(len) {
        return Err(Error::value("split", format!("sizes do not add up: expected a sum of {len}")));
    }
    parts(x, sizes.iter().copied(), axis)
}

/// The arrays along an axis, without it.
pub fn unstack(x: &Array, axis: usize) -> Result<Vec<Array>> {
    let (_, len, _) = shape::around("unstack", x.shape(), axis)?;
    let (mut shape, mut strides) = (*x.shape(), *x.strides());
    shape.remove(axis);
    strides.remove(axis);
    let mut out = reserved::<Array>(len);
    let step = if x.numel() > 0 { x.strides()[axis] } else { 0 };
    let mut offset = x.offset() as isize;
    for _ in 0..len {
        let part = match out.last() {
            None => x.with_geometry(&shape, &strides, offset as usize)?,
            Some(last) => last.moved_to(offset as usize)?,
        };
        out.push(part);
        offset = offset.wrapping_add(step);
    }
    Ok(out)
}

/// One part after the other; those that follow one of their size share its geometry.
fn parts(x: &Array, sizes: impl ExactSizeIterator<Item = usize>, axis: usize) -> Result<Vec<Array>> {
    let mut out = reserved::<Array>(sizes.len());
    let mut start = 0;
    for size in sizes {
        let way = if x.numel() > 0 && size > 0 { start as isize * x.strides()[axis] } else { 0 };
        let offset = (x.offset() as isize + way) as usize;
        let part = match out.last() {
            Some(last) if last.shape()[axis] == size => last.moved_to(offset)?,
            _ => {
                let mut shape = *x.shape();
                shape[axis] = size;
                x.with_geometry(&shape, x.strides(), offset)?
            }
        };
        out.push(part);
        start += size;
    }
    Ok(out)
}

//! Counts of whole numbers.

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::convert::cast;

/// Counters that are used in turns, so that equal neighbors do not wait for one another.
const TURNS: usize = 4;
/// Counts up to which that pays: all counters stay in the first-level cache.
const FEW: usize = 1 << 10;

/// How often each number from 0 on occurs, at least `minlength` counts, as `int64`.
pub fn bincount(x: &Array, minlength: usize) -> Result<Array> {
    if x.rank() != 1 || !matches!(x.dtype(), dtype if !dtype.is_float() && dtype != DType::Bool) {
        return Err(Error::Rejected("a vector of integers has counts"));
    }
    let whole = cast(x, DType::I64)?.contiguous()?;
    let values = whole.as_slice::<i64>().expect("dense");
    let (least, most) = values.iter().fold((0, -1), |(least, most), &value| (value.min(least), value.max(most)));
    if least < 0 {
        if x.dtype() == DType::U64 {
            return Err(Error::OutOfMemory(usize::MAX));
        }
        let text =
            format!("a negative number has no count: got {least}, expected 0 or more\nhint: px.unique_counts(x)");
        return Err(Error::value("bincount", text));
    }
    let size = minlength.max((most + 1) as usize);
    let mut out = Array::zeros(DType::I64, &[size])?;
    let counts = out.as_mut_slice::<i64>();
    if size <= FEW {
        let mut turns = [[0_i64; FEW]; TURNS];
        let (fours, rest) = values.as_chunks::<TURNS>();
        for four in fours {
            turns.iter_mut().zip(four).for_each(|(counts, &value)| counts[value as usize] += 1);
        }
        rest.iter().for_each(|&value| turns[0][value as usize] += 1);
        for (at, count) in counts.iter_mut().enumerate() {
            *count = turns.iter().map(|turn| turn[at]).sum();
        }
    } else {
        values.iter().for_each(|&value| counts[value as usize] += 1);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::samples::{Rng, floats};

    #[test]
    fn counts_are_those_of_a_plain_loop() {
        let mut rng = Rng::new(5);
        for (size, span) in [(0, 3), (1, 1), (7, 5), (1000, 3), (5000, 4000)] {
            let values: Vec<i16> = (0..size).map(|_| rng.below(span) as i16).collect();
            let found = floats(&bincount(&Array::from_slice(&values, &[size]).unwrap(), 2).unwrap());
            let most = values.iter().max().map_or(0, |&most| most as usize + 1).max(2);
            let wanted: Vec<f64> =
                (0..most).map(|at| values.iter().filter(|&&value| value as usize == at).count() as f64).collect();
            assert_eq!(found, wanted);
        }
        assert!(bincount(&Array::from_slice(&[3_i32, -1], &[2]).unwrap(), 0).is_err());
        assert!(bincount(&Array::from_slice(&[u64::MAX], &[1]).unwrap(), 0).is_err());
    }
}

//! Whether elements are among those of another array: by a table of the numbers from the smallest to the largest where these
//! are integers that lie near each other, else by hashing.

use crate::array::Array;
use crate::array::number::Ordered;
use crate::dispatch;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::filled;
use crate::ops::elementwise::to_word;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 15;
/// Tables with an entry for each number have at most this many, or so many for each element.
const DIRECT: u64 = 1 << 16;
const PER_ELEMENT: u64 = 4;

/// Whether each element of `x1` is among those of `x2`, or is not (`invert`). nan is among none.
pub fn isin(x1: &Array, x2: &Array, invert: bool) -> Result<Array> {
    if x1.dtype() != x2.dtype() {
        return Err(Error::Rejected("elements of one type are looked for"));
    }
    let (x1, x2) = (x1.contiguous()?, x2.contiguous()?);
    let mut out = Array::uninit(DType::Bool, x1.shape())?;
    dispatch!(all x1.dtype(), T => {
        let (x1, x2) = (x1.as_slice::<T>().expect("dense"), x2.as_slice::<T>().expect("dense"));
        among(x1, x2, out.as_mut_slice::<bool>(), invert);
    });
    Ok(out)
}

fn among<T: Ordered>(x1: &[T], x2: &[T], out: &mut [bool], invert: bool) {
    let mut each = |find: &(dyn Fn(&[T], &mut [bool]) + Sync)| {
        let to = SharedMut::new(out.as_mut_ptr());
        threads::parallel(x1.len().div_ceil(GRAIN), &|task| {
            let part = task * GRAIN..x1.len().min((task + 1) * GRAIN);
            // SAFETY: each task has its own part of the result.
            find(&x1[part.clone()], unsafe { to.slice(part) });
        });
    };
    let direct = if T::DTYPE.kind() == Kind::Float { None } else { Direct::new(x2, x1.len()) };
    if let Some(direct) = direct {
        each(&|x, out| out.iter_mut().zip(x).for_each(|(out, &x)| *out = direct.has(whole(x)) != invert));
    } else {
        let hashed = Hashed::new(x2);
        // Only nan differs from itself.
        each(&|x, out| {
            out.iter_mut().zip(x).for_each(|(out, &x)| *out = (!x.is_nan() && hashed.has(word(x))) != invert);
        });
    }
}

/// An integer, so that differences of two are right whatever its type.
#[inline(always)]
fn whole<T: Ordered>(x: T) -> u64 {
    let word = to_word(x);
    let spare = 64 - 8 * size_of::<T>() as u32;
    match T::DTYPE {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => ((word << spare) as i64 >> spare) as u64,
        _ => word,
    }
}

/// The bits of an element; both zeros have the same.
#[inline(always)]
fn word<T: Ordered>(x: T) -> u64 {
    let zero = T::from_i64(0);
    to_word(if x == zero { zero } else { x })
}

/// A mark for each number from the smallest on.
struct Direct {
    least: u64,
    marks: Vec<bool>,
}

impl Direct {
    /// None where there would be many more numbers than elements.
    fn new<T: Ordered>(x: &[T], others: usize) -> Option<Self> {
        let &first = x.first()?;
        let (least, most) = x.iter().fold((first, first), |(least, most), &x| {
            (if x < least { x } else { least }, if x > most { x } else { most })
        });
        let (least, span) = (whole(least), whole(most).wrapping_sub(whole(least)));
        if span >= DIRECT.max((x.len() + others) as u64 * PER_ELEMENT) {
            return None;
        }
        let mut marks = filled(false, span as usize + 1);
        for &x in x {
            marks[whole(x).wrapping_sub(least) as usize] = true;
        }
        Some(Self { least, marks })
    }

    #[inline(always)]
    fn has(&self, word: u64) -> bool {
        let place = word.wrapping_sub(self.least);
        place < self.marks.len() as u64 && self.marks[place as usize]
    }
}

/// A table of words by their hashes; one that is taken goes to the next free place. 0 stands for a free place.
struct Hashed {
    zero: bool,
    shift: u32,
    words: Vec<u64>,
}

impl Hashed {
    fn new<T: Ordered>(x: &[T]) -> Self {
        let size = (2 * x.len()).next_power_of_two().max(16);
        let mut table = Self { zero: false, shift: 64 - size.trailing_zeros(), words: filled(0, size) };
        for &x in x.iter().filter(|x| !x.is_nan()) {
            let word = word(x);
            if word == 0 {
                table.zero = true;
                continue;
            }
            let mut place = table.place(word);
            while table.words[place] != 0 && table.words[place] != word {
                place = (place + 1) & (size - 1);
            }
            table.words[place] = word;
        }
        table
    }

    #[inline(always)]
    fn place(&self, word: u64) -> usize {
        // Knuth's multiplicative hash: bits that differ anywhere below reach the first ones.
        let mixed = (word ^ (word >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> self.shift) as usize
    }

    #[inline(always)]
    fn has(&self, word: u64) -> bool {
        if word == 0 {
            return self.zero;
        }
        let mut place = self.place(word);
        loop {
            match self.words[place] {
                found if found == word => return true,
                0 => return false,
                _ => place = (place + 1) & (self.words.len() - 1),
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Axes that operands step along together: neighbours made one, and elements found by their number.

use super::shape::Inline;

/// An axis with the steps of one operand or of several.
#[expect(clippy::len_without_is_empty, reason = "no axis is a collection")]
pub trait Axis: Copy + Default {
    /// Its length.
    fn len(&self) -> usize;
    /// The same steps over another length.
    #[must_use]
    fn with_len(self, len: usize) -> Self;
    /// Whether one step here is as far as all of `inner`, for every operand.
    fn spans(&self, inner: &Self) -> bool;
}

/// Length and step.
impl Axis for (usize, isize) {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0
    }
    #[inline(always)]
    fn with_len(self, len: usize) -> Self {
        (len, self.1)
    }
    #[inline(always)]
    fn spans(&self, inner: &Self) -> bool {
        self.1 == inner.1 * inner.0 as isize
    }
}

/// Drops axes of length 1 and makes one of neighbours that every operand steps through as one run.
#[inline]
pub fn merged<A: Axis>(axes: impl IntoIterator<Item = A>) -> Inline<A> {
    let mut out = Inline::empty();
    for axis in axes {
        match out.last_mut() {
            _ if axis.len() == 1 => {}
            Some(last) if A::spans(last, &axis) => *last = axis.with_len(last.len() * axis.len()),
            _ => out.push(axis),
        }
    }
    out
}

/// Calls `each` with every axis, its place and the coordinate along it of the element of that number, in row-major order.
/// The last axis comes first.
#[inline(always)]
pub fn locate<A: Axis>(axes: &[A], mut number: usize, mut each: impl FnMut(usize, &A, isize)) {
    for (at, axis) in axes.iter().enumerate().rev() {
        let (rest, coordinate) = if at == 0 { (0, number) } else { (number / axis.len(), number % axis.len()) };
        each(at, axis, coordinate as isize);
        number = rest;
    }
}

/// Offset of the element of that number.
#[inline]
pub fn offset(axes: &[(usize, isize)], number: usize) -> isize {
    let mut sum = 0;
    locate(axes, number, |_, axis, i| sum += i * axis.1);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_one_axis() {
        assert_eq!(merged([(2, 12), (1, 7), (3, 4), (4, 1)])[..], [(24, 1)]);
        assert_eq!(merged([(2, 12), (3, 1), (4, 3)])[..], [(2, 12), (3, 1), (4, 3)]);
        assert!(merged([(1, 5), (1, 5)]).is_empty());
    }

    #[test]
    fn numbers_count_in_row_major_order() {
        let axes = [(2, 100), (3, -10), (4, 1)];
        let all: Vec<isize> = (0..24).map(|number| offset(&axes, number)).collect();
        let plain = (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..4).map(move |k| 100 * i - 10 * j + k)));
        assert_eq!(all, plain.collect::<Vec<isize>>());
        assert_eq!(offset(&[], 0), 0);
    }
}

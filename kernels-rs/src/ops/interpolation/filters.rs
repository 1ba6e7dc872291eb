//! Lines in another size by a filter, which is widened where a line shrinks and `antialias` asks for it, as Pillow does.

use super::map::Map;
use crate::error::named;
use crate::memory::scratch::collected;

/// How places between the elements are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Keys' cubic, with a = -0.75, or -0.5 where it is widened.
    Cubic,
    /// Three lobes of a sine cardinal under the middle one of a wider one.
    Lanczos3,
    /// The two neighbors.
    Linear,
    /// The element before the place.
    Nearest,
    /// The element around the middle.
    NearestExact,
}

/// A filter with its settings.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Which one.
    pub filter: Filter,
    /// Whether the elements at the ends keep their places, or the ends of the line.
    pub align_corners: bool,
    /// Whether it is widened where the line shrinks.
    pub antialias: bool,
}

named!(Filter, "interpolate": "cubic" Cubic, "lanczos3" Lanczos3, "linear" Linear, "nearest" Nearest, "nearest_exact" NearestExact);

impl Filter {
    /// How far it reaches.
    fn reach(self) -> f64 {
        match self {
            Self::Cubic => 2.0,
            Self::Lanczos3 => 3.0,
            Self::Linear => 1.0,
            Self::Nearest | Self::NearestExact => 0.0,
        }
    }
}

impl How {
    /// `count` results from a line of `sources` elements. Without renewed weights, elements beyond the ends are those at them.
    pub fn map(self, sources: usize, count: usize) -> Map<f64> {
        // A result reads what its filter reaches and nothing else: what is not finite farther off does not get there.
        let taps = |at: usize| match self.filter {
            Filter::Nearest => (at * sources / count, vec![1.0]),
            Filter::NearestExact => ((2 * at + 1) * sources / (2 * count), vec![1.0]),
            _ => self.taps(sources, count, at),
        };
        Map::of_runs(sources, (0..count).map(taps))
    }

    /// The first element that a result reads, and the weights from there on.
    fn taps(self, sources: usize, count: usize, at: usize) -> (usize, Vec<f64>) {
        let place = if self.align_corners {
            (at * (sources - 1)) as f64 / count.saturating_sub(1).max(1) as f64
        } else {
            ((2 * at + 1) as i128 * sources as i128 - count as i128) as f64 / (2 * count) as f64
        };
        let narrow = if self.antialias { (count as f64 / sources as f64).min(1.0) } else { 1.0 };
        let before = place.ceil() - 1.0;
        let start = (-self.filter.reach() / narrow).floor() as i64 + 1;
        let offsets = start..start + 2 * (1 - start);
        let mut weights = collected(offsets.clone().map(|by| self.weight((by as f64 - (place - before)) * narrow)));
        let inside = |by: i64| (0..sources as i64).contains(&(before as i64 + by));
        if self.antialias || self.filter == Filter::Lanczos3 {
            // What is outside has no weight, and the rest has all of it.
            let total: f64 =
                offsets.clone().zip(&weights).filter(|(by, _)| inside(*by)).map(|(_, weight)| weight).sum();
            if total != 0.0 {
                for (by, weight) in offsets.clone().zip(&mut weights) {
                    *weight = if inside(by) { *weight / total } else { 0.0 };
                }
            }
        }
        let mut found: Vec<(usize, f64)> = vec![];
        for (by, weight) in offsets.zip(weights) {
            let element = (before as i64 + by).clamp(0, sources as i64 - 1) as usize;
            match found.last_mut() {
                Some((last, sum)) if *last == element => *sum += weight,
                _ => found.push((element, weight)),
            }
        }
        let used = |(_, weight): &(usize, f64)| *weight != 0.0;
        let (first, last) = (found.iter().position(used).unwrap_or(0), found.iter().rposition(used).unwrap_or(0));
        (found[first].0, collected(found[first..=last].iter().map(|&(_, weight)| weight)))
    }

    fn weight(self, off: f64) -> f64 {
        let t = off.abs();
        match self.filter {
            Filter::Cubic => {
                let a = if self.antialias { -0.5 } else { -0.75 };
                match t {
                    _ if t <= 1.0 => ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
                    _ if t < 2.0 => (((t - 5.0) * t + 8.0) * t - 4.0) * a,
                    _ => 0.0,
                }
            }
            Filter::Lanczos3 if t < 3.0 => cardinal(t) * cardinal(t / 3.0),
            Filter::Linear => (1.0 - t).max(0.0),
            _ => 0.0,
        }
    }
}

/// `sin(pi t) / (pi t)`.
fn cardinal(t: f64) -> f64 {
    let x = std::f64::consts::PI * t;
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

#[cfg(test)]
mod tests;

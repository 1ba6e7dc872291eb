//! Ways to compute one thing, as a table: the first row that applies computes it, and the last one always does.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The rows of a table by name, in the order in which they are asked.
pub struct Ways {
    /// What they compute.
    pub op: &'static str,
    /// Their names.
    pub names: &'static [&'static str],
    /// Place of the one way that is asked beside the last, from 1 on; 0 for all.
    only: AtomicUsize,
    /// A bit for the place of each way that was taken since ways were forced last.
    taken: AtomicUsize,
}

impl Ways {
    /// With all rows asked.
    pub const fn new(op: &'static str, names: &'static [&'static str]) -> Self {
        Self { op, names, only: AtomicUsize::new(0), taken: AtomicUsize::new(0) }
    }

    /// Whether the row at this place, from 1 on, is asked.
    #[inline(always)]
    pub fn asks(&self, place: usize) -> bool {
        let only = self.only.load(Relaxed);
        only == 0 || only == place || place == self.names.len()
    }

    /// Notes that the row at this place computed something.
    #[inline(always)]
    pub fn note(&self, place: usize) {
        // Most often it is known: tasks that run at once only read.
        if self.taken.load(Relaxed) >> place & 1 == 0 {
            self.taken.fetch_or(1 << place, Relaxed);
        }
    }

    /// The ways that were taken since ways were forced last.
    pub fn taken(&self) -> Vec<&'static str> {
        let taken = self.taken.load(Relaxed);
        (1..).zip(self.names).filter(|(place, _)| taken >> place & 1 == 1).map(|(_, name)| *name).collect()
    }

    /// From now on asks this way alone, wherever it applies, and the last one elsewhere; all of them for none.
    pub fn force(&self, name: Option<&str>) -> Result<()> {
        let place = name.map_or(Some(0), |name| self.names.iter().position(|known| *known == name).map(|at| at + 1));
        let Some(place) = place else {
            return Err(Error::value(
                "force_way",
                format!("no such way: got {name:?}, expected one of {:?}", self.names),
            ));
        };
        self.only.store(place, Relaxed);
        self.taken.store(0, Relaxed);
        Ok(())
    }
}

/// What a way gives that may find out, when it has begun, that another has to go on.
pub trait Declines<R> {
    /// What was computed, if it was.
    fn given(self) -> Option<R>;
}

impl Declines<()> for bool {
    fn given(self) -> Option<()> {
        self.then_some(())
    }
}

impl<R> Declines<R> for Option<R> {
    fn given(self) -> Option<R> {
        self
    }
}

/// A table and the function that goes down it. `, or next` stands behind a way that may decline.
macro_rules! ways {
    ($table:ident $op:literal
     $(#[$meta:meta])* [$($kind:tt)+] $function:ident[$($generics:tt)*]($($given:tt)*) -> Result<$gives:ty> {
        $(let $local:pat = $value:expr;)*
        $($name:literal if $applies:expr => $run:expr $(, or $next:ident)?;)+
     }) => {
        #[doc = concat!("The ways of ", $op, ".")]
        pub static $table: $crate::ops::ways::Ways = $crate::ops::ways::Ways::new($op, &[$($name),+]);

        $(#[$meta])*
        $($kind)+ $function<$($generics)*>($($given)*) -> $crate::error::Result<$gives> {
            $(let $local = $value;)*
            let mut place = 0;
            $(
                place += 1;
                if $table.asks(place) && $applies {
                    $crate::ops::ways::taken!($table, place, $run $(, $next)?);
                }
            )+
            unreachable!("the last way applies always")
        }
    };
}
pub(crate) use ways;

macro_rules! taken {
    ($table:ident, $place:ident, $run:expr) => {{
        $table.note($place);
        return $run;
    }};
    ($table:ident, $place:ident, $run:expr, $next:ident) => {
        if let Some(given) = $crate::ops::ways::Declines::given($run?) {
            $table.note($place);
            return Ok(given);
        }
    };
}
pub(crate) use taken;

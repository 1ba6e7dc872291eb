//! What is found out once for each length, and kept for later calls.

use super::columns::Columns;
use super::line::Line;
use super::real::Halves;
use crate::machine::fork::on_fork;
use crate::machine::lanes::Real;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

/// Plans of each kind that are kept for later calls.
const KEPT: usize = 64;
/// Lengths of kept plans of a kind together, unless a single one is longer: a plan takes up to 100 bytes for each element.
const MOST: usize = 1 << 21;

/// A float with transforms.
pub trait Transformed: Real {
    /// The plans of this type, which are kept; null before the first.
    fn plans() -> &'static AtomicPtr<Mutex<Plans<Self>>>;
}

/// Plans by length.
type Known<P> = Vec<(usize, P)>;

/// Plans by length: of complex lines and columns, and what turns the halves of real ones of even length.
pub struct Plans<T: Transformed> {
    lines: Known<Arc<Line<T>>>,
    columns: Known<Arc<Columns<T>>>,
    halves: Known<Arc<Halves<T>>>,
}

impl<T: Transformed> Plans<T> {
    const fn new() -> Self {
        Self { lines: Vec::new(), columns: Vec::new(), halves: Vec::new() }
    }
}

/// The plan for a length: one of the last that were made, or a new one, if there is one. Nobody waits for who makes it.
fn plan<T: Transformed, P: Clone>(
    kind: impl Fn(&mut Plans<T>) -> &mut Known<P>,
    n: usize,
    make: impl FnOnce(usize) -> Option<P>,
) -> Option<P> {
    if let Some((_, plan)) = kind(&mut known::<T>()).iter().find(|(other, _)| *other == n) {
        return Some(plan.clone());
    }
    let made = make(n)?;
    let mut known = known::<T>();
    let plans = kind(&mut known);
    plans.retain(|(other, _)| *other != n);
    while !plans.is_empty() && (plans.len() >= KEPT || n + plans.iter().map(|(n, _)| n).sum::<usize>() > MOST) {
        plans.remove(0);
    }
    plans.push((n, made.clone()));
    Some(made)
}

/// The plans, also after one that memory did not suffice for: they are whole at any time.
fn known<T: Transformed>() -> MutexGuard<'static, Plans<T>> {
    let mut at = T::plans().load(Acquire);
    if at.is_null() {
        let fresh = Box::into_raw(Box::new(Mutex::new(Plans::new())));
        at = match T::plans().compare_exchange(at, fresh, AcqRel, Acquire) {
            Ok(_) => fresh,
            Err(other) => {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                other
            }
        };
    }
    // SAFETY: what was published is never freed.
    unsafe { &*at }.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frees the plans that are kept.
pub fn forget() {
    fn of_type<T: Transformed>() {
        *known::<T>() = Plans::new();
    }
    of_type::<f32>();
    of_type::<f64>();
}

/// A forked child plans anew: whoever held the lock of the plans is gone.
pub fn install_fork_handlers() {
    extern "C" fn child() {
        f32::plans().store(std::ptr::null_mut(), SeqCst);
        f64::plans().store(std::ptr::null_mut(), SeqCst);
    }
    static ONCE: Once = Once::new();
    // SAFETY: it touches atomics.
    unsafe { on_fork(&ONCE, None, None, child) };
}

/// Of complex lines.
pub fn lines_plan<T: Transformed>(n: usize) -> Arc<Line<T>> {
    plan(|plans: &mut Plans<T>| &mut plans.lines, n, |n| Some(Arc::new(Line::new(n)))).expect("always one")
}

/// Of complex columns; none where the length has a large prime factor.
pub fn columns_plan<T: Transformed>(n: usize) -> Option<Arc<Columns<T>>> {
    plan(|plans: &mut Plans<T>| &mut plans.columns, n, |n| Columns::new(n).map(Arc::new))
}

/// What takes the halves of a real line apart.
pub fn halves_plan<T: Transformed>(n: usize) -> Arc<Halves<T>> {
    plan(|plans: &mut Plans<T>| &mut plans.halves, n, |n| Some(Arc::new(Halves::new(n)))).expect("always one")
}

macro_rules! transformed {
    ($($ty:ident)*) => {$(
        impl Transformed for $ty {
            fn plans() -> &'static AtomicPtr<Mutex<Plans<Self>>> {
                static PLANS: AtomicPtr<Mutex<Plans<$ty>>> = AtomicPtr::new(std::ptr::null_mut());
                &PLANS
            }
        }
    )*};
}
transformed!(f32 f64);

#[cfg(test)]
mod tests;

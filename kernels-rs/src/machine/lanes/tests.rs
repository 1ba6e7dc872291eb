//! What moves between lanes, in registers of every kind that this machine has, against plain loops.

use super::{Lanes, Real};
use crate::dtype::Element;
#[cfg(target_arch = "x86_64")]
use crate::machine::simd::{Level, level};

/// A value for each place, and none twice.
fn value<T: Real>(place: usize) -> T {
    T::from_f64(place as f64 + 1.0)
}

/// The lanes of a register.
unsafe fn lanes_of<V: Lanes>(x: V) -> Vec<V::Elem> {
    let mut lanes = vec![V::Elem::default(); V::N];
    // SAFETY: room for all lanes; the caller has the instructions.
    unsafe { x.store(lanes.as_mut_ptr()) };
    lanes
}

fn same<T: Real>(got: &[T], want: &[T], what: &str) {
    let [got, want] = [got, want].map(|lanes| lanes.iter().map(|lane| lane.to_f64()).collect::<Vec<_>>());
    assert_eq!(got, want, "{what}");
}

unsafe fn moves<V: Lanes>() {
    let n = V::N;
    let numbers: Vec<V::Elem> = (0..2 * n).map(value).collect();
    let every_second = |first: usize| (first..2 * n).step_by(2).map(value).collect::<Vec<_>>();
    // SAFETY: as many numbers as are read; the caller has the instructions.
    unsafe {
        let (a, b) = (V::load(numbers.as_ptr()), V::load(numbers.as_ptr().add(n)));
        let (even, odd) = V::deinterleave(a, b);
        same(&lanes_of(even), &every_second(0), "even");
        same(&lanes_of(odd), &every_second(1), "odd");
        same(&lanes_of(V::even(a, b)), &every_second(0), "even alone");
        let (low, high) = V::interleave(a, b);
        let turns: Vec<_> = (0..n).flat_map(|i| [value(i), value(n + i)]).collect();
        same(&lanes_of(low), &turns[..n], "first turns");
        same(&lanes_of(high), &turns[n..], "last turns");
        same(&lanes_of(a.reverse()), &(0..n).rev().map(value).collect::<Vec<_>>(), "reversed");
        // Small whole numbers: rounded once or twice, it is the same.
        let want: Vec<_> = (0..n).map(|i| value::<V::Elem>(i) * value(n + i) - value(0)).collect();
        same(&lanes_of(a.mul_sub(b, V::splat(value(0)))), &want, "product less one");
    }
}

unsafe fn gathers<V: Lanes>() {
    let from: Vec<V::Elem> = (0..100).map(value).collect();
    let mut places: Vec<i32> = (0..V::N as i32).map(|i| 97 - 5 * i).collect();
    places[V::N / 2] = -1;
    for count in [0, 1, V::N - 1, V::N] {
        let lane = |i: usize| if i < count && places[i] >= 0 { from[places[i] as usize] } else { V::Elem::default() };
        // SAFETY: places of the list, or below 0; the caller has the instructions.
        let got = unsafe { lanes_of(V::gather(from.as_ptr(), places.as_ptr(), count)) };
        same(&got, &(0..V::N).map(lane).collect::<Vec<_>>(), "gathered");
    }
}

/// Numbers in the places of a register, some at a time, so that each stands in each place.
fn numbers<V: Lanes>(all: &[f64]) -> Vec<Vec<V::Elem>> {
    let lane = |at: usize| V::Elem::from_f64(all[at % all.len()]);
    (0..all.len()).map(|first| (first..first + V::N).map(lane).collect()).collect()
}

unsafe fn rounds<V: Lanes>() {
    const ALL: [f64; 13] =
        [-0.0, 0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.25, 7.0, 8.0, 1e9, f64::INFINITY, f64::NEG_INFINITY];
    for x in numbers::<V>(&ALL) {
        let map =
            |function: fn(f64) -> f64| x.iter().map(|x| V::Elem::from_f64(function(x.to_f64()))).collect::<Vec<_>>();
        // SAFETY: as many numbers as are read; the caller has the instructions.
        unsafe {
            let lanes = V::load(x.as_ptr());
            same(&lanes_of(lanes.floor()), &map(f64::floor), "rounded down");
            same(&lanes_of(lanes.round()), &map(f64::round_ties_even), "rounded");
        }
    }
}

unsafe fn ranges<V: Lanes>() {
    const ALL: [f64; 9] = [-1.0, -0.0, 0.0, 1.0, 7.0, 8.0, 1e12, f64::NAN, f64::NEG_INFINITY];
    let high = 7.0;
    for x in numbers::<V>(&ALL) {
        let inside = |x: f64| (0.0..=high).contains(&x);
        let want: Vec<i32> = x.iter().map(|x| if inside(x.to_f64()) { x.to_f64() as i32 } else { -1 }).collect();
        // SAFETY: as many numbers as are read, room for as many; the caller has the instructions.
        unsafe {
            let (lanes, zero, high) =
                (V::load(x.as_ptr()), V::splat(value(0)).sub(V::splat(value(0))), V::splat(V::Elem::from_f64(high)));
            let mut got = vec![0; V::N];
            lanes.store_inside(high, got.as_mut_ptr());
            assert_eq!(got, want);
            assert_eq!(lanes.all_between(zero, high), want.iter().all(|&at| at >= 0), "{want:?}");
            assert!(high.all_between(zero, high) && zero.all_between(zero, high) && !zero.all_between(high, high));
        }
    }
}

unsafe fn pairs<V: Lanes>() {
    let from: Vec<V::Elem> = (0..100).map(value).collect();
    let places: Vec<i32> = (0..V::N as i32).map(|i| 98 - 6 * i).collect();
    let want = |behind: usize| places.iter().map(|&at| from[at as usize + behind]).collect::<Vec<_>>();
    // SAFETY: places of the list but the last; the caller has the instructions.
    let (a, b) = unsafe { V::gather_pairs(from.as_ptr(), places.as_ptr()) };
    // SAFETY: as above.
    unsafe {
        same(&lanes_of(a), &want(0), "first of pairs");
        same(&lanes_of(b), &want(1), "second of pairs");
    }
}

unsafe fn roots<V: Lanes>() {
    for step in 0..20_000 {
        let x: Vec<V::Elem> = (0..V::N)
            .map(|lane| V::Elem::from_f64(10f64.powf(f64::from(step) * 0.0037 - 36.0) * (1.0 + lane as f64 / 17.0)))
            .collect();
        // SAFETY: as many numbers as are read; the caller has the instructions.
        let got = unsafe { lanes_of(V::load(x.as_ptr()).near_sqrt()) };
        for (x, got) in x.iter().zip(got) {
            let want = x.to_f64().sqrt();
            // A unit in the last place of float32, as wide as it is where it is widest.
            let close = 0.6 * 2f64.powi(-23) * 2f64.powf(want.log2().floor());
            assert!((got.to_f64() - want).abs() <= close, "root {want} of {}", x.to_f64());
        }
    }
    // SAFETY: the caller has the instructions.
    let below = unsafe { lanes_of(V::splat(V::Elem::from_f64(-1.0)).near_sqrt()) };
    assert!(below.iter().all(|root| root.to_f64().is_nan()));
}

unsafe fn turns<V: Lanes, const R: usize>() {
    let rows: Vec<V::Elem> = (0..R * V::N).map(value).collect();
    // SAFETY: as many numbers as are read; the caller has the instructions.
    let got: Vec<_> = unsafe {
        let whole = V::turned_over::<R>(std::array::from_fn(|row| V::load(rows.as_ptr().add(row * V::N))));
        whole.into_iter().flat_map(|row| lanes_of(row)).collect()
    };
    let want: Vec<_> = (0..R * V::N).map(|i| rows[i % R * V::N + i / R]).collect();
    same(&got, &want, "turned over");
}

unsafe fn all<V: Lanes>() {
    // SAFETY: the caller has the instructions.
    unsafe {
        moves::<V>();
        gathers::<V>();
        rounds::<V>();
        ranges::<V>();
        pairs::<V>();
        roots::<V>();
        turns::<V, 2>();
        if V::N >= 4 {
            turns::<V, 4>();
        }
        if V::N >= 8 {
            turns::<V, 8>();
        }
        if V::N >= 16 {
            turns::<V, 16>();
        }
    }
}

#[test]
fn lanes_move_as_in_plain_loops() {
    // SAFETY: portable code, or instructions that the machine was asked for.
    unsafe {
        all::<<f32 as Real>::Portable>();
        all::<<f64 as Real>::Portable>();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all::<super::x86::F32x8>();
                all::<super::x86::F64x4>();
            }
            if level() == Level::Avx512 {
                all::<super::x86::F32x16>();
                all::<super::x86::F64x8>();
            }
        }
    }
}

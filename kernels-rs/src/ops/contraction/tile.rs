//! The register tile: `rows x (width * N)` sums that stay in registers while they walk over `k`.

use crate::machine::lanes::{Kernel, Lanes, Real};
use crate::machine::simd::{Level, level, opaque, prefetch, prefetch_near};

use super::lies::Lies;

/// How a cell of the left side meets a register of the right side.
pub trait Multiply: 'static {
    /// Left sides and registers across for which there are tiles: others are not compiled.
    const TILES: (Lies, [usize; 2]) = (Lies::Either, [1, 4]);
    /// Of the sums.
    type Real: Real;
    /// What is broadcast.
    type Left: Copy;
    /// What is read a register at a time.
    type Right: Copy;

    /// All lanes equal.
    ///
    /// # Safety
    /// The cell is valid, and the machine has the instructions of `V`.
    unsafe fn splat<V: Lanes<Elem = Self::Real>>(cell: *const Self::Left) -> V;
    /// Reads `N` cells. `step`: from these to those of the next depth.
    ///
    /// # Safety
    /// As above.
    unsafe fn load<V: Lanes<Elem = Self::Real>>(cells: *const Self::Right, step: isize) -> V;
    /// Reads `W` registers of neighbouring cells.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
    unsafe fn load_all<V: Lanes<Elem = Self::Real>, const W: usize>(cells: *const Self::Right, step: isize) -> [V; W] {
        // A tile is a part of it.
        let mut values = [V::splat(Self::Real::default()); W];
        for w in 0..W {
            values[w] = Self::load::<V>(cells.add(w * V::N), step);
        }
        values
    }
    /// Whether the kernel is compiled for x86-64 without AVX2 too.
    const BASELINE: bool = true;
    /// True when packed left sides meet right sides that lie as they are, so that these are asked for ahead.
    const LYING: bool = false;
    /// Asks for cells that are read soon.
    #[inline(always)]
    fn ask(cells: *const Self::Right, _step: isize) {
        prefetch(cells);
    }
    /// `sum + left * right`.
    ///
    /// # Safety
    /// The machine has the instructions of `V` and of [`Multiply::launch`].
    unsafe fn accumulate<V: Lanes<Elem = Self::Real>>(left: V, right: V, sum: V) -> V;
    /// Runs a kernel with the instructions that `accumulate` needs.
    fn launch<K: Kernel<Self::Real>>(kernel: K) {
        crate::machine::lanes::launch(kernel);
    }
}

/// What [`Multiply`] asks for where one instruction multiplies cells of 32 bits and adds them to sums of 32 bits: its features and
/// its name on x86-64, the type that it takes, its function for ARM, and whether this machine has it.
macro_rules! by_one_instruction {
    (target_feature(enable = $features:literal), $instruction:ident $taken:ident, $arm:ident, $there:path) => {
        type Real = f32;
        type Left = u32;
        type Right = u32;
        #[inline(always)]
        unsafe fn splat<V: Lanes<Elem = f32>>(cell: *const u32) -> V {
            V::splat(*cell.cast::<f32>())
        }
        #[inline(always)]
        unsafe fn load<V: Lanes<Elem = f32>>(cells: *const u32, _: isize) -> V {
            V::load(cells.cast())
        }
        #[inline(always)]
        unsafe fn accumulate<V: Lanes<Elem = f32>>(left: V, right: V, sum: V) -> V {
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::x86_64::{$instruction, $taken};
                use std::mem::transmute_copy;
                const { assert!(size_of::<V>() == size_of::<$taken>() || V::N != 16) };
                // SAFETY: `launch` below runs with the instruction and registers of 512 bits, which hold any bits.
                let (left, right) = (transmute_copy::<V, $taken>(&left), transmute_copy::<V, $taken>(&right));
                transmute_copy(&$instruction(transmute_copy(&sum), left, right))
            }
            // SAFETY: only called where this machine has the instruction.
            #[cfg(target_arch = "aarch64")]
            return crate::machine::lanes::neon::$arm(left, right, sum);
            #[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
            unreachable!("no machine of this kind has the instruction");
        }
        #[cfg(target_arch = "x86_64")]
        fn launch<K: crate::machine::lanes::Kernel<f32>>(kernel: K) {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
            #[target_feature(enable = $features)]
            fn run<K: crate::machine::lanes::Kernel<f32>>(kernel: K) {
                // SAFETY: the features are enabled here.
                unsafe { kernel.run::<<f32 as crate::machine::lanes::Real>::Wide512>() }
            }
            assert!($there(), "no such instruction here");
            // SAFETY: just checked.
            unsafe { run(kernel) }
        }
    };
}
pub(super) use by_one_instruction;

/// What the sums begin with.
#[derive(Clone, Copy)]
pub enum Start<R> {
    /// Nothing.
    Zero,
    /// One value per column.
    Columns(*const R),
    /// One value per row, and the step between them.
    Rows(*const R, isize),
    /// What is there.
    Kept,
}

/// Depths after which a tile asks for another part of what is read next, and that a large one walks without counting.
const ASKS: usize = 4;

/// Whether a tile walks [`ASKS`] depths at a time: one whose sums fill the registers. Where two threads share a core, each issues
/// three instructions a cycle, and counting would be one in five.
const fn unrolls<const R: usize, const W: usize>() -> bool {
    W == 4 && R > 4 || W == 2 && R > 12
}

/// Whether there are tiles of so many registers across for left sides that lie so.
const fn has<M: Multiply>(lies: Lies, width: usize) -> bool {
    let (there, [least, most]) = M::TILES;
    (matches!(there, Lies::Either) || there as u8 == lies as u8) && least <= width && width <= most
}

/// Products of a block of the left side with one panel of the right side, or several that are not packed.
pub struct Strip<M: Multiply> {
    /// Cells to walk over.
    pub k: usize,
    /// Of the left side.
    pub rows: usize,
    /// Of the panel: at most `width * N`; the panel itself is as wide as its registers.
    pub cols: usize,
    /// Registers across: 1, 2, or 4.
    pub width: usize,
    /// Rows of a tile at most: [`wide_rows`], [`tile_rows`], or [`lying_rows`].
    pub high: usize,
    /// Whole panels side by side, where the right side is read where it lies.
    pub strips: usize,
    /// The left side.
    pub left: *const M::Left,
    /// Row and depth steps of a left side that is not packed; else it is in the panels of [`Cut`].
    pub left_steps: Option<(isize, isize)>,
    /// The panel.
    pub right: *const M::Right,
    /// Cells from one depth to the next.
    pub right_step: isize,
    /// How many cells ahead to ask for; 0 for a right side that needs no asking.
    pub prefetch: isize,
    /// Where the products after these read, and how many cells: each tile asks for its share of them, so that they have come to
    /// the second-level cache by then. None: 0 cells.
    pub next: (*const M::Right, usize),
    /// What the sums begin with.
    pub start: Start<M::Real>,
    /// The sums.
    pub to: *mut M::Real,
    /// From one row of the sums to the next.
    pub pitch: isize,
}

/// Rows of a tile two registers wide.
pub fn tile_rows<R: Real>() -> usize {
    match level() {
        Level::Avx512 => <R::Wide512 as Lanes>::ROWS,
        Level::Avx2 => <R::Wide256 as Lanes>::ROWS,
        Level::Baseline => <R::Portable as Lanes>::ROWS,
    }
}

/// Rows of a tile four registers wide that fit the register file.
pub fn wide_rows() -> usize {
    if level() == Level::Avx512 { 6 } else { 2 }
}

/// Rows of a tile whose left side is not packed: the addresses of more rows would not fit the general registers.
pub fn lying_rows<R: Real>(width: usize) -> usize {
    if width == 4 { wide_rows() } else { tile_rows::<R>().min(8) }
}

/// Rows cut into panels of nearly the same height, so that no tile is left with a row or two.
#[derive(Clone, Copy)]
pub struct Cut {
    /// Number of panels.
    pub count: usize,
    least: usize,
    higher: usize,
}

impl Cut {
    /// Panels of at most `most` rows.
    #[inline(always)]
    pub fn new(rows: usize, most: usize) -> Self {
        let count = rows.div_ceil(most);
        Self { count, least: rows / count, higher: rows % count }
    }

    /// First row of a panel.
    #[inline(always)]
    pub fn first(self, at: usize) -> usize {
        at * self.least + at.min(self.higher)
    }

    /// Height of a panel.
    #[inline(always)]
    pub fn height(self, at: usize) -> usize {
        self.least + usize::from(at < self.higher)
    }
}

impl<M: Multiply> Kernel<M::Real> for Strip<M> {
    const BASELINE: bool = M::BASELINE;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = M::Real>>(self) {
        let cut = Cut::new(self.rows, self.high);
        // No closures here: they would not inherit the instruction set.
        for at in 0..self.strips * cut.count {
            let (strip, at) = if self.strips == 1 { (0, at) } else { (at / cut.count, at % cut.count) };
            let (first, height) = (cut.first(at), cut.height(at));
            // Whether the left side is packed is a constant of the tile: with steps known, addressing needs no register.
            macro_rules! choose {
                ($($packed:literal)*; $($narrow:literal)*; $($wide:literal)*) => {
                    match (self.left_steps.is_none(), self.width, height) {
                        // SAFETY: the caller promises the instructions of `V` and a strip of `rows x cols` with `k`
                        // cells; a tile is a part of it.
                        $((true, 1, $packed) if const { has::<M>(Lies::Packed, 1) && $packed <= V::ROWS } => unsafe { self.tile::<V, $packed, 1, true>(first, strip) },)*
                        // SAFETY: the caller promises the instructions of `V` and a strip of `rows x cols` with `k`
                        // cells; a tile is a part of it.
                        $((true, 2, $packed) if const { has::<M>(Lies::Packed, 2) && $packed <= V::ROWS } => unsafe { self.tile::<V, $packed, 2, true>(first, strip) },)*
                        // SAFETY: the caller promises the instructions of `V` and a strip of `rows x cols` with `k`
                        // cells; a tile is a part of it.
                        $((_, 1, $narrow) if const { has::<M>(Lies::InPlace, 1) && $narrow <= V::ROWS } => unsafe { self.tile::<V, $narrow, 1, false>(first, strip) },)*
                        // SAFETY: the caller promises the instructions of `V` and a strip of `rows x cols` with `k`
                        // cells; a tile is a part of it.
                        $((_, 2, $narrow) if const { has::<M>(Lies::InPlace, 2) && $narrow <= V::ROWS } => unsafe { self.tile::<V, $narrow, 2, false>(first, strip) },)*
                        // SAFETY: as above.
                        $((_, 4, $wide) if const { has::<M>(M::TILES.0, 4) && (V::ROWS > 6 || $wide <= 2) } => unsafe { self.tile::<V, $wide, 4, false>(first, strip) },)*
                        _ => unreachable!("no tile of this size"),
                    }
                };
            }
            choose!(1 2 3 4 5 6 7 8 9 10 11 12 13 14; 1 2 3 4 5 6 7 8; 1 2 3 4 5 6);
        }
    }
}

impl<M: Multiply> Strip<M> {
    #[inline(always)]
    unsafe fn tile<V: Lanes<Elem = M::Real>, const R: usize, const W: usize, const P: bool>(
        &self,
        first: usize,
        strip: usize,
    ) {
        let skipped = strip * W * V::N;
        let to = self.to.wrapping_offset(first as isize * self.pitch).wrapping_add(skipped);
        let right = self.right.wrapping_add(skipped);
        // Lanes past `cols` are neither read from the start values nor written.
        let full = self.cols == W * V::N;
        let next = self.share(first);
        let mut sums = self.start_values::<V, R, W>(first, skipped, to);
        match self.left_steps {
            Some(steps) if const { !P && has::<M>(Lies::InPlace, W) } => {
                let left = self.left.wrapping_offset(first as isize * steps.0);
                // A constant block: what it rules out is never compiled.
                if const { unrolls::<R, W>() } && steps.1 == 1 {
                    if self.prefetch == 0 {
                        self.walk_direct::<V, R, W, true, false>(left, steps, right, next, &mut sums);
                    } else {
                        self.walk_direct::<V, R, W, true, true>(left, steps, right, next, &mut sums);
                    }
                } else {
                    self.walk_direct::<V, R, W, false, true>(left, steps, right, next, &mut sums);
                }
            }
            _ if const { has::<M>(Lies::Packed, W) && (P || W == 4) } => {
                self.walk_packed::<V, R, W>(self.left.wrapping_add(first * self.k), right, next, &mut sums);
            }
            _ => unreachable!("packed tiles are told so"),
        }
        let kept = matches!(self.start, Start::Kept);
        for (i, sums) in sums.iter().enumerate() {
            for (w, &sum) in sums.iter().enumerate() {
                let at = to.wrapping_offset(i as isize * self.pitch).wrapping_add(w * V::N);
                match (full, kept) {
                    (true, false) => sum.store(at),
                    (true, true) => sum.add(V::load(at)).store(at),
                    (false, false) => sum.store_partial(at, self.lanes::<V>(w)),
                    (false, true) => {
                        let lanes = self.lanes::<V>(w);
                        sum.add(V::load_partial(at, lanes)).store_partial(at, lanes);
                    }
                }
            }
        }
    }

    /// What a tile starts from. Sums to add to stay where they are and are fetched for the end.
    ///
    /// # Safety
    ///
    /// As for `tile`.
    #[inline(always)]
    unsafe fn start_values<V: Lanes<Elem = M::Real>, const R: usize, const W: usize>(
        &self,
        first: usize,
        skipped: usize,
        to: *mut M::Real,
    ) -> [[V; W]; R] {
        // SAFETY: lanes past `cols` are not read.
        let mut sums = [[V::splat(M::Real::default()); W]; R];
        match self.start {
            Start::Zero => {}
            Start::Columns(start) => {
                for w in 0..W {
                    let value = V::load_partial(start.wrapping_add(skipped + w * V::N), self.lanes::<V>(w));
                    for row in &mut sums {
                        row[w] = value;
                    }
                }
            }
            Start::Rows(start, step) => {
                for (i, row) in sums.iter_mut().enumerate() {
                    *row = [V::splat(*start.wrapping_offset((first + i) as isize * step)); W];
                }
            }
            Start::Kept => {
                for i in 0..R {
                    for w in 0..W {
                        prefetch(to.wrapping_offset(i as isize * self.pitch).wrapping_add(w * V::N));
                    }
                }
            }
        }
        sums
    }

    /// The same with another right side and way to multiply.
    #[rustfmt::skip]
    pub fn same_left<O: Multiply<Left = M::Left, Real = M::Real>>(&self, right: *const O::Right) -> Strip<O> {
        let Self { k, rows, cols, width, high, strips, left, left_steps, right_step, prefetch, start, to, pitch, .. } = *self;
        Strip { k, rows, cols, width, high, strips, left, left_steps, right, right_step, prefetch, next: (right, 0), start, to, pitch }
    }

    /// Where the tile from row `first` on asks for cells of `next`, and the step to those that it asks for then.
    #[inline(always)]
    fn share(&self, first: usize) -> (*const M::Right, usize) {
        let (start, cells) = self.next;
        let each = cells / self.rows;
        (start.wrapping_add(first * each), (each * self.high).div_ceil(self.k.div_ceil(ASKS)))
    }

    /// Columns under register `w`.
    #[inline(always)]
    fn lanes<V: Lanes<Elem = M::Real>>(&self, w: usize) -> usize {
        self.cols.saturating_sub(w * V::N).min(V::N)
    }

    /// The loop that counts, over a packed left side.
    #[inline(always)]
    unsafe fn walk_packed<V: Lanes<Elem = M::Real>, const R: usize, const W: usize>(
        &self,
        mut left: *const M::Left,
        mut right: *const M::Right,
        (mut next, next_step): (*const M::Right, usize),
        sums: &mut [[V; W]; R],
    ) {
        // A copy of which no address is taken: it stays in registers.
        let mut kept = *sums;
        macro_rules! depths {
            ($($after:literal)*) => {{
                $(
                    // SAFETY: inside the operands.
                    unsafe {
                        let values = M::load_all::<V, W>(right, self.right_step);
                        if M::LYING {
                            M::ask(right.wrapping_offset(self.prefetch), self.right_step);
                        }
                        for i in 0..R {
                            let factor = M::splat::<V>(left.add($after * R + i));
                            for w in 0..W {
                                kept[i][w] = M::accumulate(factor, values[w], kept[i][w]);
                            }
                        }
                    }
                    right = right.wrapping_offset(self.right_step);
                )*
                left = left.wrapping_add([$($after),*].len() * R);
            }};
        }
        let mut done = 0;
        if const { unrolls::<R, W>() } {
            while done + ASKS <= self.k {
                prefetch_near(next);
                next = next.wrapping_add(next_step);
                depths!(0 1 2 3);
                done += ASKS;
            }
        }
        for at in done..self.k {
            if at % ASKS == 0 {
                prefetch_near(next);
                next = next.wrapping_add(next_step);
            }
            depths!(0);
        }
        *sums = kept;
    }

    /// The loop that counts, over a left side that is read where it lies. `RUNS`: `deep` is 1, and `ASK` says whether the right
    /// side is asked for.
    #[inline(always)]
    unsafe fn walk_direct<
        V: Lanes<Elem = M::Real>,
        const R: usize,
        const W: usize,
        const RUNS: bool,
        const ASK: bool,
    >(
        &self,
        left: *const M::Left,
        (row, deep): (isize, isize),
        mut right: *const M::Right,
        (mut next, next_step): (*const M::Right, usize),
        sums: &mut [[V; W]; R],
    ) {
        let mut kept = *sums;
        // One pointer per three rows: the others are a step and two steps away, which addressing modes reach.
        let mut groups = [left, left.wrapping_offset(3 * row), left.wrapping_offset(6 * row)];
        macro_rules! depth {
            () => {{
                // SAFETY: inside the operands; prefetching never faults.
                unsafe {
                    let values = M::load_all::<V, W>(right, self.right_step);
                    if ASK && (RUNS || self.prefetch != 0) {
                        self.ask_ahead::<V, W>(right);
                    }
                    for i in 0..R {
                        let factor = M::splat::<V>(groups[i / 3].wrapping_offset((i % 3) as isize * row));
                        for w in 0..W {
                            kept[i][w] = M::accumulate(factor, values[w], kept[i][w]);
                        }
                    }
                }
                right = right.wrapping_offset(self.right_step);
                for group in &mut groups[..R.div_ceil(3)] {
                    // Else the compiler reads neighbours of several depths at once, and the sums leave the registers.
                    *group = if RUNS { opaque(group.wrapping_offset(1)) } else { group.wrapping_offset(deep) };
                }
            }};
        }
        let mut done = 0;
        if RUNS {
            while done + ASKS <= self.k {
                prefetch_near(next);
                next = next.wrapping_add(next_step);
                depth!();
                depth!();
                depth!();
                depth!();
                done += ASKS;
            }
        }
        for at in done..self.k {
            if at % ASKS == 0 {
                prefetch_near(next);
                next = next.wrapping_add(next_step);
            }
            depth!();
        }
        *sums = kept;
    }

    /// Asks for what a right side has some depths ahead.
    #[inline(always)]
    fn ask_ahead<V: Lanes<Elem = M::Real>, const W: usize>(&self, right: *const M::Right) {
        // A line holds the narrow elements of two registers.
        let each = 64 / size_of::<M::Right>();
        for w in 0..(W * V::N).div_ceil(each) {
            M::ask(right.wrapping_offset(self.prefetch).wrapping_add(w * each), self.right_step);
        }
    }
}

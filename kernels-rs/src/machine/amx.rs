//! The unit that multiplies tiles, sixteen lines of 64 bytes each (Intel AMX): Intel 64 and IA-32 Architectures Software
//! Developer's Manual, volume 1, chapter 18. Its registers are state that Linux hands out on request, for a whole process;
//! without that request the first instruction ends the process, so being listed by CPUID is not enough.
//!
//! The compiler knows the mnemonics, but neither types nor a calling convention for tiles: what loads, multiplies and stores
//! them is one piece of assembly.

/// Lines of a tile, and elements of four bytes across one.
pub const LINES: usize = 16;
/// Bytes of a line.
pub const LINE: usize = 64;
/// Bytes of two tiles that lie side by side.
pub const STEP: usize = 2 * LINES * LINE;

/// The sides of 32 x 32 sums. Along the depth both go in steps of 64 bytes of a row: 32 bfloat16, or 64 bytes.
#[derive(Clone, Copy)]
pub struct Sides {
    /// The first row on the left.
    pub left: *const u8,
    /// Bytes from one row to the next.
    pub row: usize,
    /// Bytes from the first row of the upper tile to that of the lower one.
    pub lower: usize,
    /// Bytes from one step to the next.
    pub deep: usize,
    /// [`STEP`] bytes a step: sixteen lines, each with as many columns as sums, a column four bytes of the depth.
    pub right: *const u8,
    /// Steps, at least one.
    pub steps: usize,
}

/// The sides of 32 x 32 sums of which the right one is read where it lies, at places of its own for each step.
#[derive(Clone, Copy)]
pub struct Apart {
    /// [`STEP`] bytes a step: an upper and a lower tile of sixteen rows.
    pub left: *const u8,
    /// Where the offsets begin.
    pub right: *const u8,
    /// Bytes from one line of a tile on the right to the next.
    pub line: usize,
    /// Bytes from the tile of the first sixteen columns to that of the others.
    pub beside: isize,
    /// Bytes from `right` to the first line, of each step.
    pub offsets: *const usize,
    /// Steps, at least one.
    pub steps: usize,
}

/// What multiplies tiles: the processor, or what stands in for it where it cannot.
pub trait Unit {
    /// Says how many rows the upper and the lower tile on the left have, 1 to 16 each. Until [`Unit::release`] the thread
    /// has tiles.
    ///
    /// # Safety
    /// [`ask`] said that there are tiles.
    unsafe fn rows(upper: usize, lower: usize);
    /// Gives the tiles back.
    ///
    /// # Safety
    /// As above.
    unsafe fn release();
    /// Products of bfloat16, added to 32 x 32 sums that follow each other, or written there. Rows that the tiles do not
    /// have are neither read nor written. Numbers below the normal range count as 0.
    ///
    /// # Safety
    /// As above, after [`Unit::rows`]; the sides and sums are there.
    unsafe fn multiply(sides: Sides, sums: *mut f32, adds: bool);
    /// As [`Unit::multiply`], for rows on the left that do not begin at cache lines, read through the first-level cache. Measured on
    /// Xeon (family 6, model 207), one step of products with rows two bytes off: 53 ns, past that cache 80 to 200; with rows at
    /// cache lines 33, past it 31.
    ///
    /// # Safety
    /// As there.
    unsafe fn multiply_askew(sides: Sides, sums: *mut f32, adds: bool);
    /// As [`Unit::multiply`], for left sides in two parts: a step of the first is followed by that of the second, [`STEP`] bytes on,
    /// and both meet the same step on the right.
    ///
    /// # Safety
    /// As there.
    unsafe fn multiply_left_parts(sides: Sides, sums: *mut f32, adds: bool);
    /// As [`Unit::multiply`], for right sides in two parts: a step of the first is followed by that of the second, and both meet the
    /// same step on the left.
    ///
    /// # Safety
    /// As there.
    unsafe fn multiply_right_parts(sides: Sides, sums: *mut f32, adds: bool);
    /// Products of unsigned bytes on the left and signed ones on the right, otherwise as [`Unit::multiply`]. Sums wrap.
    ///
    /// # Safety
    /// As there.
    unsafe fn multiply_bytes(sides: Sides, sums: *mut i32, adds: bool);
    /// As [`Unit::multiply`], and nothing is added to.
    ///
    /// # Safety
    /// As there.
    unsafe fn multiply_apart(sides: Apart, sums: *mut f32);
}

/// The processor.
pub struct Processor;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod unit {
    use super::{Apart, LINE, LINES, Processor, STEP, Sides, Unit};
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

    /// State components of XCR0 that tiles need: their shapes and their data.
    const STATE: u64 = 3 << 17;
    /// That of the data, by its number.
    const DATA: libc::c_ulong = 18;
    /// `arch_prctl`: asks for a state component for this process (Linux, arch/x86/include/uapi/asm/prctl.h).
    const ASK: libc::c_ulong = 0x1023;

    /// Whether this process may multiply tiles of bfloat16 and of bytes: the processor can, the system saves tiles, and
    /// grants them now.
    pub fn ask() -> bool {
        #[target_feature(enable = "xsave")]
        fn saved() -> u64 {
            // SAFETY: the feature is enabled here, and register 0 is always there.
            unsafe { _xgetbv(0) }
        }
        // CPUID 1, ECX: the system uses XSAVE. CPUID 7, EDX: AMX-BF16, AMX-TILE, AMX-INT8.
        let (uses, has) = (1 << 27, 1 << 22 | 1 << 24 | 1 << 25);
        #[allow(unused_unsafe, reason = "newer compilers call these functions safe")]
        // SAFETY: each x86-64 processor has the instruction; a leaf is read only where the processor says that it exists.
        let listed =
            unsafe { __cpuid(0).eax >= 7 && __cpuid(1).ecx & uses != 0 && __cpuid_count(7, 0).edx & has == has };
        // SAFETY: the processor has XSAVE, and the system uses it.
        let saves = listed && is_x86_feature_detected!("xsave") && unsafe { saved() } & STATE == STATE;
        // SAFETY: a system call that reads two numbers.
        saves && unsafe { libc::syscall(libc::SYS_arch_prctl, ASK, DATA) } == 0
    }

    /// The shapes of eight tiles, as the instruction reads them.
    #[repr(C, align(64))]
    struct Shapes {
        palette: u8,
        start: u8,
        unused: [u8; 14],
        bytes: [u16; 16],
        lines: [u8; 16],
    }

    /// Adds to four tiles of sums, or writes them, by the instructions of these names. By `tileloaddt1` no line of the left side, which
    /// is read for each panel of the right one, is kept in the first-level cache, so that the panel stays there. A step on the
    /// right takes so many bytes; what else is done in a step stands behind.
    macro_rules! multiply {
        ($products:literal, $left:literal, $sides:expr, $sums:expr, $adds:expr) => {
            multiply!($products, $left, $sides, $sums, $adds, STEP)
        };
        ($products:literal, $left:literal, $sides:expr, $sums:expr, $adds:expr, $right:expr $(, $more:literal)*) => {
            asm!(
                "cmp {adds:e}, 0",
                "je 2f",
                "tileloadd tmm0, [{sums} + {pitch}]",
                "tileloadd tmm1, [{sums} + {pitch} + 64]",
                "tileloadd tmm2, [{sums} + {pitch} + 2048]",
                "tileloadd tmm3, [{sums} + {pitch} + 2112]",
                "jmp 3f",
                "2:",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "3:",
                concat!($left, " tmm4, [{upper} + {row}]"),
                "tileloadd tmm6, [{right} + {pitch}]",
                concat!($products, " tmm0, tmm4, tmm6"),
                "tileloadd tmm7, [{right} + {pitch} + 64]",
                concat!($products, " tmm1, tmm4, tmm7"),
                concat!($left, " tmm5, [{lower} + {row}]"),
                concat!($products, " tmm2, tmm5, tmm6"),
                concat!($products, " tmm3, tmm5, tmm7"),
                $($more,)*
                "add {upper}, {deep}",
                "add {lower}, {deep}",
                "add {right}, {across}",
                "sub {steps}, 1",
                "jnz 3b",
                "tilestored [{sums} + {pitch}], tmm0",
                "tilestored [{sums} + {pitch} + 64], tmm1",
                "tilestored [{sums} + {pitch} + 2048], tmm2",
                "tilestored [{sums} + {pitch} + 2112], tmm3",
                adds = in(reg) u32::from($adds),
                sums = in(reg) $sums,
                pitch = in(reg) 2 * LINE,
                upper = inout(reg) $sides.left => _,
                lower = inout(reg) $sides.left.wrapping_add($sides.lower) => _,
                row = in(reg) $sides.row,
                deep = in(reg) $sides.deep,
                right = inout(reg) $sides.right => _,
                across = const $right,
                steps = inout(reg) $sides.steps => _,
                out("tmm0") _,
                out("tmm1") _,
                out("tmm2") _,
                out("tmm3") _,
                out("tmm4") _,
                out("tmm5") _,
                out("tmm6") _,
                out("tmm7") _,
                options(nostack)
            )
        };
    }

    impl Unit for Processor {
        unsafe fn rows(upper: usize, lower: usize) {
            let (upper, lower, whole) = (upper as u8, lower as u8, LINES as u8);
            let mut shapes = Shapes { palette: 1, start: 0, unused: [0; 14], bytes: [0; 16], lines: [0; 16] };
            shapes.bytes[..8].fill(LINE as u16);
            // Sums above, sums below, the left side above and below, the right side.
            shapes.lines[..8].copy_from_slice(&[upper, upper, lower, lower, upper, lower, whole, whole]);
            // SAFETY: the shapes are within bounds.
            asm!("ldtilecfg [{}]", in(reg) &raw const shapes, options(nostack, readonly));
        }

        unsafe fn release() {
            asm!("tilerelease", options(nostack, nomem));
        }

        unsafe fn multiply(sides: Sides, sums: *mut f32, adds: bool) {
            multiply!("tdpbf16ps", "tileloaddt1", sides, sums, adds);
        }

        unsafe fn multiply_askew(sides: Sides, sums: *mut f32, adds: bool) {
            multiply!("tdpbf16ps", "tileloadd", sides, sums, adds);
        }

        unsafe fn multiply_left_parts(sides: Sides, sums: *mut f32, adds: bool) {
            multiply!(
                "tdpbf16ps",
                "tileloaddt1",
                sides,
                sums,
                adds,
                STEP,
                "tileloaddt1 tmm4, [{upper} + {row} + 2048]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloaddt1 tmm5, [{lower} + {row} + 2048]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7"
            );
        }

        unsafe fn multiply_right_parts(sides: Sides, sums: *mut f32, adds: bool) {
            multiply!(
                "tdpbf16ps",
                "tileloaddt1",
                sides,
                sums,
                adds,
                2 * STEP,
                "tileloadd tmm6, [{right} + {pitch} + 2048]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tileloadd tmm7, [{right} + {pitch} + 2112]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm5, tmm7"
            );
        }

        unsafe fn multiply_bytes(sides: Sides, sums: *mut i32, adds: bool) {
            multiply!("tdpbusd", "tileloaddt1", sides, sums, adds);
        }

        unsafe fn multiply_apart(sides: Apart, sums: *mut f32) {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "2:",
                "mov {at}, qword ptr [{offsets}]",
                "add {at}, {right}",
                "tileloaddt1 tmm4, [{left} + {row}]",
                "tileloadd tmm6, [{at} + {line}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "add {at}, {beside}",
                "tileloadd tmm7, [{at} + {line}]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloaddt1 tmm5, [{left} + {row} + 1024]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {left}, 2048",
                "add {offsets}, 8",
                "sub {steps}, 1",
                "jnz 2b",
                "tilestored [{sums} + {pitch}], tmm0",
                "tilestored [{sums} + {pitch} + 64], tmm1",
                "tilestored [{sums} + {pitch} + 2048], tmm2",
                "tilestored [{sums} + {pitch} + 2112], tmm3",
                at = out(reg) _,
                sums = in(reg) sums,
                pitch = in(reg) 2 * LINE,
                left = inout(reg) sides.left => _,
                row = in(reg) LINE,
                right = in(reg) sides.right,
                line = in(reg) sides.line,
                beside = in(reg) sides.beside,
                offsets = inout(reg) sides.offsets => _,
                steps = inout(reg) sides.steps => _,
                out("tmm0") _,
                out("tmm1") _,
                out("tmm2") _,
                out("tmm3") _,
                out("tmm4") _,
                out("tmm5") _,
                out("tmm6") _,
                out("tmm7") _,
                options(nostack)
            );
        }
    }

    /// Products of tiles that touch no memory, four at a time on sums of their own.
    ///
    /// # Safety
    /// [`ask`] said that there are tiles.
    pub unsafe fn products(rounds: usize) {
        Processor::rows(LINES, LINES);
        asm!(
            "2:",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "sub {rounds}, 1",
            "jnz 2b",
            rounds = inout(reg) rounds => _,
            options(nostack, nomem)
        );
        Processor::release();
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod unit {
    use super::{Apart, Processor, Sides, Unit};

    /// No other system has tiles.
    pub fn ask() -> bool {
        false
    }

    impl Unit for Processor {
        unsafe fn rows(_: usize, _: usize) {
            unreachable!("no tiles here");
        }
        unsafe fn release() {}
        unsafe fn multiply(_: Sides, _: *mut f32, _: bool) {
            unreachable!("no tiles here");
        }
        unsafe fn multiply_askew(_: Sides, _: *mut f32, _: bool) {
            unreachable!("no tiles here");
        }
        unsafe fn multiply_left_parts(_: Sides, _: *mut f32, _: bool) {
            unreachable!("no tiles here");
        }
        unsafe fn multiply_right_parts(_: Sides, _: *mut f32, _: bool) {
            unreachable!("no tiles here");
        }
        unsafe fn multiply_bytes(_: Sides, _: *mut i32, _: bool) {
            unreachable!("no tiles here");
        }
        unsafe fn multiply_apart(_: Apart, _: *mut f32) {
            unreachable!("no tiles here");
        }
    }

    /// As on a processor with tiles.
    ///
    /// # Safety
    /// Never called: [`ask`] says no.
    pub unsafe fn products(_: usize) {
        unreachable!("no tiles here");
    }
}

pub use unit::{ask, products};

/// Multiply-adds of one round of [`products`].
pub const ROUND: usize = 4 * LINES * LINES * LINE / 2;

#[cfg(test)]
pub mod model;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

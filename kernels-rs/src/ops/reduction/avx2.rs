//! Two builds of a loop instead of three: reductions wait for memory, and AVX-512 brings them nothing.

/// As [`crate::vectorize`], without the AVX-512 build.
macro_rules! vectorize_avx2 {
    ($(#[$meta:meta])* $vis:vis $name:ident [$($g:ident : $bound:path),*] ($($arg:ident : $ty:ty),* $(,)?)
        => $inner:path) => {
        $(#[$meta])*
        $vis fn $name <$($g: $bound),*> ($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
                fn avx2 <$($g: $bound),*> ($($arg: $ty),*) { $inner($($arg),*) }
                if $crate::machine::simd::level() >= $crate::machine::simd::Level::Avx2 {
                    // SAFETY: the level says that the CPU has these features.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $inner($($arg),*)
        }
    };
}
pub(crate) use vectorize_avx2;

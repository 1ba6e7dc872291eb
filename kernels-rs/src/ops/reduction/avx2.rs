//! Two builds of a loop instead of three: reductions wait for memory, and AVX-512 brings them nothing.

/// As [`crate::vectorize`], without the AVX-512 build, for unsafe functions: their jobs hold addresses.
macro_rules! vectorize_avx2 {
    ($(#[$meta:meta])* $vis:vis $name:ident [$($g:ident : $bound:path),*] ($($arg:ident : $ty:ty),* $(,)?)
        => $inner:path) => {
        $(#[$meta])*
        $vis unsafe fn $name <$($g: $bound),*> ($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
                unsafe fn avx2 <$($g: $bound),*> ($($arg: $ty),*) {
                    // SAFETY: the call goes on with the job that the caller promises for.
                    $inner($($arg),*)
                }
                if $crate::machine::simd::level() >= $crate::machine::simd::Level::Avx2 {
                    // SAFETY: the level says that the CPU has these features; the job is the caller's.
                    return avx2::<$($g),*>($($arg),*);
                }
            }
            // SAFETY: the call goes on with the job that the caller promises for.
            $inner($($arg),*)
        }
    };
}
pub(crate) use vectorize_avx2;

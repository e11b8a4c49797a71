//! Assertions by cost: `assert!` always (O(1)), `debug_assert!` in hot loops, [`verify!`](crate::verify) for
//! checks that walk a structure and run only with the feature `verify`.

/// Runs a costly check when the feature `verify` of `terrane-base` is on; compiles to nothing otherwise.
#[macro_export]
macro_rules! verify {
    ($($arg:tt)*) => {
        if $crate::assertion::VERIFY {
            assert!($($arg)*);
        }
    };
}

/// True if [`verify!`](crate::verify) checks run.
pub const VERIFY: bool = cfg!(feature = "verify");

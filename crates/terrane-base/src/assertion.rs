//! Assertions by cost: `assert!` always (O(1)), `debug_assert!` in hot loops, [`verify!`](crate::verify) for
//! checks that walk a structure.
//!
//! All three are on in tests and in the simulator, which are built with debug assertions. The feature
//! `verify` switches the walks on in any other build.

/// Runs a costly check where debug assertions are on, or the feature `verify` of `terrane-base`; compiles to
/// nothing otherwise.
#[macro_export]
macro_rules! verify {
    ($($arg:tt)*) => {
        if $crate::assertion::VERIFY {
            assert!($($arg)*);
        }
    };
}

/// True if [`verify!`](crate::verify) checks run.
pub const VERIFY: bool = cfg!(any(debug_assertions, feature = "verify"));

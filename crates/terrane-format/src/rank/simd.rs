//! The kernels with vector instructions.
//!
//! Unsafe code for two purposes only: loads of whole vectors from arrays whose length is in their type, and
//! calls of functions whose instructions [`is_available`] has found. [`super::choose`] accepts no other
//! kernel, and the first search takes an available one; the safe functions here check it again if a caller
//! names the kernel.
#![expect(unsafe_code, reason = "vector loads, and calls of functions that need detected instructions")]

use terrane_base::options::SearchKernel;

use super::{LEAF_HEAD_BYTES, ROOT};

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{is_available, leaf, root, tree};

#[cfg(target_arch = "aarch64")]
pub(super) use arm::{is_available, leaf, root, tree};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use none::{is_available, leaf, root, tree};

/// The safe functions of the kernels of one architecture: they map a kernel's name to its functions.
macro_rules! faces {
    ($( $kernel:ident => $module:ident, $feature:tt; )*) => {
        #[inline]
        pub(in super::super) fn is_available(kernel: SearchKernel) -> bool {
            match kernel {
                $( SearchKernel::$kernel => detected!($feature), )*
                _ => false,
            }
        }

        #[inline]
        pub(in super::super) fn leaf(
            kernel: SearchKernel,
            heads: &[u8; LEAF_HEAD_BYTES],
            target: u64,
        ) -> usize {
            match kernel {
                // SAFETY: only available kernels are chosen.
                $( SearchKernel::$kernel => unsafe { $module::leaf(heads, target) }, )*
                _ => super::super::scalar_leaf(heads, target),
            }
        }

        #[inline]
        pub(in super::super) fn root(kernel: SearchKernel, heads: &[u64; ROOT], target: u64) -> usize {
            match kernel {
                // SAFETY: only available kernels are chosen.
                $( SearchKernel::$kernel => unsafe { $module::root(heads, target) }, )*
                _ => super::super::scalar_root(heads, target),
            }
        }

        #[inline]
        pub(in super::super) fn tree<const STRIDE: usize>(
            kernel: SearchKernel,
            heads: &[u64; ROOT],
            leaves: &[u8],
            leaf_count: usize,
            target: u64,
        ) -> usize {
            match kernel {
                $( SearchKernel::$kernel => {
                    // SAFETY: only available kernels are chosen.
                    unsafe { $module::tree::<STRIDE>(heads, leaves, leaf_count, target) }
                } )*
                _ => {
                    let at = super::super::scalar_root(heads, target);
                    let count = |leaf: &_| super::super::scalar_leaf(leaf, target);
                    super::super::below::<STRIDE>(leaves, leaf_count, at, count)
                }
            }
        }
    };
}

/// The search over both layers, built from a kernel's own two functions as one function, so that they are
/// inlined.
macro_rules! tree {
    ($feature:literal) => {
        #[target_feature(enable = $feature)]
        pub(super) fn tree<const STRIDE: usize>(
            heads: &[u64; ROOT],
            leaves: &[u8],
            leaf_count: usize,
            target: u64,
        ) -> usize {
            let at = root(heads, target);
            let Some(number) = at.min(leaf_count).checked_sub(1) else { return 0 };
            let heads = leaves.get(number * STRIDE..).and_then(|rest| rest.first_chunk());
            heads.map_or(0, |heads| number * super::super::super::LEAF + leaf(heads, target))
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LEAF_HEAD_BYTES, ROOT, SearchKernel};

    macro_rules! detected {
        ("sse2") => {
            // Every processor of this architecture supports it.
            true
        };
        ("avx2") => {
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
        };
        ("avx512") => {
            is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("popcnt")
        };
    }

    faces! {
        Sse2 => sse2, "sse2";
        Avx2 => avx2, "avx2";
        Avx512 => avx512, "avx512";
    }

    mod avx512 {
        use super::{LEAF_HEAD_BYTES, ROOT};
        use std::arch::x86_64::{_mm512_cmple_epu64_mask, _mm512_loadu_si512, _mm512_set1_epi64};

        #[inline]
        #[target_feature(enable = "avx512f,popcnt")]
        pub(super) fn leaf(heads: &[u8; LEAF_HEAD_BYTES], target: u64) -> usize {
            let target = _mm512_set1_epi64(target.cast_signed());
            // SAFETY: 64 bytes are there, by the type.
            let heads = unsafe { _mm512_loadu_si512(heads.as_ptr().cast()) };
            _mm512_cmple_epu64_mask(heads, target).count_ones() as usize
        }

        #[inline]
        #[target_feature(enable = "avx512f,popcnt")]
        pub(super) fn root(heads: &[u64; ROOT], target: u64) -> usize {
            let target = _mm512_set1_epi64(target.cast_signed());
            // SAFETY: 128 bytes are there, by the type.
            let (low, high) = unsafe {
                let at = heads.as_ptr();
                (_mm512_loadu_si512(at.cast()), _mm512_loadu_si512(at.add(8).cast()))
            };
            let low = u16::from(_mm512_cmple_epu64_mask(low, target));
            let high = u16::from(_mm512_cmple_epu64_mask(high, target));
            (low | high << 8).count_ones() as usize
        }

        tree!("avx512f,popcnt");
    }

    mod avx2 {
        use super::{LEAF_HEAD_BYTES, ROOT};
        use std::arch::x86_64::{
            __m256i, _mm256_castsi256_pd, _mm256_cmpgt_epi64, _mm256_loadu_si256, _mm256_movemask_pd,
            _mm256_set1_epi64x, _mm256_xor_si256,
        };

        /// One bit for each of four numbers that is above the target. There is no unsigned comparison, so
        /// both sides are shifted into the signed order.
        #[inline]
        #[target_feature(enable = "avx2,popcnt")]
        fn above(heads: __m256i, shifted_target: __m256i) -> u32 {
            let heads = _mm256_xor_si256(heads, _mm256_set1_epi64x(i64::MIN));
            let above = _mm256_cmpgt_epi64(heads, shifted_target);
            _mm256_movemask_pd(_mm256_castsi256_pd(above)).cast_unsigned()
        }

        #[inline]
        #[target_feature(enable = "avx2,popcnt")]
        fn shifted(target: u64) -> __m256i {
            _mm256_set1_epi64x(target.cast_signed() ^ i64::MIN)
        }

        #[inline]
        #[target_feature(enable = "avx2,popcnt")]
        pub(super) fn leaf(heads: &[u8; LEAF_HEAD_BYTES], target: u64) -> usize {
            let target = shifted(target);
            // SAFETY: 64 bytes are there, by the type.
            let (low, high) = unsafe {
                let at = heads.as_ptr();
                (_mm256_loadu_si256(at.cast()), _mm256_loadu_si256(at.add(32).cast()))
            };
            let above = above(low, target) | above(high, target) << 4;
            8 - above.count_ones() as usize
        }

        #[inline]
        #[target_feature(enable = "avx2,popcnt")]
        pub(super) fn root(heads: &[u64; ROOT], target: u64) -> usize {
            let target = shifted(target);
            let mut bits = 0;
            let (groups, _) = heads.as_chunks::<4>();
            for (number, group) in groups.iter().enumerate() {
                // SAFETY: 32 bytes are there, by the type.
                let group = unsafe { _mm256_loadu_si256(group.as_ptr().cast()) };
                bits |= above(group, target) << (4 * number);
            }
            ROOT - bits.count_ones() as usize
        }

        tree!("avx2,popcnt");
    }

    mod sse2 {
        use super::{LEAF_HEAD_BYTES, ROOT};
        use std::arch::x86_64::{
            __m128i, _mm_and_si128, _mm_castsi128_pd, _mm_cmpeq_epi32, _mm_cmpgt_epi32, _mm_loadu_si128,
            _mm_movemask_pd, _mm_or_si128, _mm_set1_epi32, _mm_set1_epi64x, _mm_shuffle_epi32, _mm_xor_si128,
        };

        /// Shuffles that copy the high half, or the low half, of each number into both halves.
        const HIGH_HALVES: i32 = 0b11_11_01_01;
        const LOW_HALVES: i32 = 0b10_10_00_00;

        /// How many of two numbers are above the target, whose halves are shifted as theirs are. Compares by
        /// halves, because SSE2 has no wider comparison.
        #[inline]
        #[target_feature(enable = "sse2")]
        fn above(heads: __m128i, shifted_target: __m128i) -> usize {
            let heads = _mm_xor_si128(heads, _mm_set1_epi32(i32::MIN));
            let greater = _mm_cmpgt_epi32(heads, shifted_target);
            let equal = _mm_cmpeq_epi32(heads, shifted_target);
            let by_high = _mm_shuffle_epi32::<HIGH_HALVES>(greater);
            let by_low = _mm_and_si128(
                _mm_shuffle_epi32::<HIGH_HALVES>(equal),
                _mm_shuffle_epi32::<LOW_HALVES>(greater),
            );
            let mask = _mm_movemask_pd(_mm_castsi128_pd(_mm_or_si128(by_high, by_low)));
            // The mask has one bit per number; this counts them.
            (mask - (mask >> 1)).cast_unsigned() as usize
        }

        #[inline]
        #[target_feature(enable = "sse2")]
        fn shifted(target: u64) -> __m128i {
            _mm_xor_si128(_mm_set1_epi64x(target.cast_signed()), _mm_set1_epi32(i32::MIN))
        }

        #[inline]
        #[target_feature(enable = "sse2")]
        pub(super) fn leaf(heads: &[u8; LEAF_HEAD_BYTES], target: u64) -> usize {
            let target = shifted(target);
            let (groups, _) = heads.as_chunks::<16>();
            let mut count = groups.len() * 2;
            for group in groups {
                // SAFETY: 16 bytes are there, by the type.
                let group = unsafe { _mm_loadu_si128(group.as_ptr().cast()) };
                count -= above(group, target);
            }
            count
        }

        #[inline]
        #[target_feature(enable = "sse2")]
        pub(super) fn root(heads: &[u64; ROOT], target: u64) -> usize {
            let target = shifted(target);
            let (groups, _) = heads.as_chunks::<2>();
            let mut count = ROOT;
            for group in groups {
                // SAFETY: 16 bytes are there, by the type.
                let group = unsafe { _mm_loadu_si128(group.as_ptr().cast()) };
                count -= above(group, target);
            }
            count
        }

        tree!("sse2");
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{LEAF_HEAD_BYTES, ROOT, SearchKernel};

    macro_rules! detected {
        ("neon") => {
            std::arch::is_aarch64_feature_detected!("neon")
        };
    }

    faces! {
        Neon => neon, "neon";
    }

    mod neon {
        use super::{LEAF_HEAD_BYTES, ROOT};
        use std::arch::aarch64::{
            uint64x2_t, vaddq_u64, vaddvq_u64, vcleq_u64, vdupq_n_u64, vld1q_u8, vld1q_u64,
            vreinterpretq_u64_u8, vshrq_n_u64,
        };

        /// 1 for each of two numbers that is at most the target.
        #[inline]
        #[target_feature(enable = "neon")]
        fn at_most(heads: uint64x2_t, target: uint64x2_t) -> uint64x2_t {
            vshrq_n_u64::<63>(vcleq_u64(heads, target))
        }

        #[inline]
        #[target_feature(enable = "neon")]
        pub(super) fn leaf(heads: &[u8; LEAF_HEAD_BYTES], target: u64) -> usize {
            let target = vdupq_n_u64(target);
            let (groups, _) = heads.as_chunks::<16>();
            let mut sum = vdupq_n_u64(0);
            for group in groups {
                // SAFETY: 16 bytes are there, by the type. Bytes, and not numbers, so that nothing need be
                // aligned.
                let group = vreinterpretq_u64_u8(unsafe { vld1q_u8(group.as_ptr()) });
                sum = vaddq_u64(sum, at_most(group, target));
            }
            vaddvq_u64(sum) as usize
        }

        #[inline]
        #[target_feature(enable = "neon")]
        pub(super) fn root(heads: &[u64; ROOT], target: u64) -> usize {
            let target = vdupq_n_u64(target);
            let (groups, _) = heads.as_chunks::<2>();
            let mut sum = vdupq_n_u64(0);
            for group in groups {
                // SAFETY: 16 bytes are there, by the type.
                let group = unsafe { vld1q_u64(group.as_ptr()) };
                sum = vaddq_u64(sum, at_most(group, target));
            }
            vaddvq_u64(sum) as usize
        }

        tree!("neon");
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod none {
    use super::{LEAF_HEAD_BYTES, ROOT, SearchKernel};

    faces! {}
}

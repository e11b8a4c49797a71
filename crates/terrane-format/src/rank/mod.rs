//! Counts how many of a few sorted numbers are at most a target: the basic step of every search in a block.
//!
//! A search tree has a root of 16 numbers and leaves of 8. The numbers are the *heads* of keys (see
//! `crate::wire::head`). A node with fewer keys is padded with its largest head, so that it is compared as a
//! whole and without a branch (`docs/format/block.md` has the layout). There is one kernel for each set of
//! vector instructions, and one without; all return the same counts (`tests/rank.rs`). The first search
//! chooses the best kernel that the processor supports; [`choose`] sets another one.
//!
//! The count never exceeds the size of the node: for a node that is out of order it is arbitrary, but never
//! out of bounds.

mod simd;

use std::sync::atomic::{AtomicU8, Ordering};

use terrane_base::options::SearchKernel;
use terrane_base::{Error, Result};

/// Numbers in a root.
pub const ROOT: usize = 16;
/// Numbers in a leaf.
pub const LEAF: usize = 8;
/// Bytes of the numbers of a leaf.
pub const LEAF_HEAD_BYTES: usize = LEAF * size_of::<u64>();

/// The kernel in use, as the number of its [`SearchKernel`]; `Auto` until the first search.
///
/// Relaxed: no other memory depends on the number, and every kernel returns the same counts.
static CHOSEN: AtomicU8 = AtomicU8::new(SearchKernel::Auto as u8);

/// Makes every search of this process use `kernel`; `Auto` means the best one that the processor supports.
/// Returns the kernel that is now in use.
///
/// # Errors
/// `Invalid`, naming the option, if the processor lacks the instructions; then nothing changes.
pub fn choose(kernel: SearchKernel) -> Result<SearchKernel> {
    let chosen = if kernel == SearchKernel::Auto { best() } else { kernel };
    if !is_available(chosen) {
        return Err(Error::invalid(format!(
            "option experiments.search_kernel={}: this processor does not have its instructions; auto takes the best it has",
            terrane_base::options::Setting::show(&kernel)
        )));
    }
    CHOSEN.store(chosen as u8, Ordering::Relaxed);
    Ok(chosen)
}

/// Returns true if the processor can run `kernel`. `Auto` always can.
#[must_use]
pub fn is_available(kernel: SearchKernel) -> bool {
    matches!(kernel, SearchKernel::Auto | SearchKernel::Scalar) || simd::is_available(kernel)
}

/// The kernels that the processor can run, from the simplest to the best.
pub fn available() -> impl Iterator<Item = SearchKernel> {
    SearchKernel::ALL.into_iter().filter(|kernel| *kernel != SearchKernel::Auto && is_available(*kernel))
}

/// The number of heads of a leaf, stored little-endian, that are at most `target`, by `kernel`.
///
/// # Panics
/// If the processor cannot run `kernel`.
#[must_use]
pub fn leaf_with(kernel: SearchKernel, heads: &[u8; LEAF_HEAD_BYTES], target: u64) -> usize {
    assert!(is_available(kernel), "{kernel:?} is not available");
    match kernel {
        SearchKernel::Auto => leaf(heads, target),
        SearchKernel::Scalar => scalar_leaf(heads, target),
        _ => simd::leaf(kernel, heads, target),
    }
}

/// As [`leaf_with`], for a root.
///
/// # Panics
/// If the processor cannot run `kernel`.
#[must_use]
pub fn root_with(kernel: SearchKernel, heads: &[u64; ROOT], target: u64) -> usize {
    assert!(is_available(kernel), "{kernel:?} is not available");
    match kernel {
        SearchKernel::Auto => root(heads, target),
        SearchKernel::Scalar => scalar_root(heads, target),
        _ => simd::root(kernel, heads, target),
    }
}

fn best() -> SearchKernel {
    // SSE2 compares 64 bits in two halves, which takes longer than the search without vectors.
    let pays = |kernel: &SearchKernel| *kernel != SearchKernel::Sse2;
    available().filter(pays).last().unwrap_or(SearchKernel::Scalar)
}

#[inline]
fn current() -> SearchKernel {
    match SearchKernel::from_u8(CHOSEN.load(Ordering::Relaxed)) {
        Some(SearchKernel::Auto) | None => first(),
        Some(kernel) => kernel,
    }
}

#[cold]
fn first() -> SearchKernel {
    let kernel = best();
    // A kernel that another thread chose in the meantime stays.
    let _ =
        CHOSEN.compare_exchange(SearchKernel::Auto as u8, kernel as u8, Ordering::Relaxed, Ordering::Relaxed);
    kernel
}

/// The number of heads of a leaf, stored little-endian, that are at most `target`.
#[inline(always)]
pub(crate) fn leaf(heads: &[u8; LEAF_HEAD_BYTES], target: u64) -> usize {
    match current() {
        SearchKernel::Scalar | SearchKernel::Auto => scalar_leaf(heads, target),
        kernel => simd::leaf(kernel, heads, target),
    }
}

/// The number of heads of a root that are at most `target`.
#[inline(always)]
pub(crate) fn root(heads: &[u64; ROOT], target: u64) -> usize {
    match current() {
        SearchKernel::Scalar | SearchKernel::Auto => scalar_root(heads, target),
        kernel => simd::root(kernel, heads, target),
    }
}

/// The number of heads of a tree of two layers that are at most `target`.
///
/// `leaves` holds `leaf_count` leaves, `STRIDE` bytes from one to the next; `heads` the first number of each.
#[inline(always)]
pub(crate) fn tree<const STRIDE: usize>(
    heads: &[u64; ROOT],
    leaves: &[u8],
    leaf_count: usize,
    target: u64,
) -> usize {
    match current() {
        SearchKernel::Scalar | SearchKernel::Auto => {
            let at = scalar_root(heads, target);
            below::<STRIDE>(leaves, leaf_count, at, |leaf| scalar_leaf(leaf, target))
        }
        kernel => simd::tree::<STRIDE>(kernel, heads, leaves, leaf_count, target),
    }
}

/// Continues from the root, in which `at` numbers are at most the target, into a leaf; returns the whole
/// count.
#[inline(always)]
fn below<const STRIDE: usize>(
    leaves: &[u8],
    leaf_count: usize,
    at: usize,
    count: impl FnOnce(&[u8; LEAF_HEAD_BYTES]) -> usize,
) -> usize {
    // A padded root counts its last leaf several times.
    let Some(leaf) = at.min(leaf_count).checked_sub(1) else { return 0 };
    let heads = leaves.get(leaf * STRIDE..).and_then(|rest| rest.first_chunk());
    heads.map_or(0, |heads| leaf * LEAF + count(heads))
}

/// Without vectors: a binary search without branches.
#[inline]
fn scalar_root(heads: &[u64; ROOT], target: u64) -> usize {
    let mut at = 0;
    for step in [8, 4, 2, 1] {
        at += usize::from(heads[at + step - 1] <= target) * step;
    }
    at + usize::from(heads[at] <= target)
}

#[inline]
fn scalar_leaf(heads: &[u8; LEAF_HEAD_BYTES], target: u64) -> usize {
    let (numbers, _) = heads.as_chunks();
    let at_most = |at: usize| usize::from(u64::from_le_bytes(numbers[at]) <= target);
    let mut at = 0;
    for step in [4, 2, 1] {
        at += at_most(at + step - 1) * step;
    }
    at + at_most(at)
}

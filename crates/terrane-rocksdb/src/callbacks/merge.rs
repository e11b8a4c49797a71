//! Merge operators.

use std::ffi::{c_char, c_int, c_void};

use crate::callbacks::{Destructor, Name, State, copied};

/// Makes a value of a base, which may be null, and operands.
pub(crate) type FullMerge = Option<
    unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *const *const c_char,
        *const usize,
        c_int,
        *mut u8,
        *mut usize,
    ) -> *mut c_char,
>;
/// Makes one operand of several.
pub(crate) type PartialMerge = Option<
    unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        usize,
        *const *const c_char,
        *const usize,
        c_int,
        *mut u8,
        *mut usize,
    ) -> *mut c_char,
>;
/// Frees what one of the two returned.
pub(crate) type DeleteValue = Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize)>;

/// A merge operator, of the user or RocksDB's own.
#[derive(Debug)]
pub(crate) enum MergeOperator {
    /// Functions of the user.
    User(Functions),
    /// Adds numbers of 8 bytes, the least byte first; other bytes count as 0.
    AddNumbers,
}

/// An operator of the user.
#[derive(Debug)]
pub(crate) struct Functions {
    state: State,
    full: FullMerge,
    partial: PartialMerge,
    delete_value: DeleteValue,
    name: String,
}

impl MergeOperator {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            MergeOperator::User(functions) => &functions.name,
            MergeOperator::AddNumbers => "uint64add",
        }
    }

    /// The value that operands, oldest first, make of a base; none if the operator fails.
    pub(crate) fn full(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            MergeOperator::User(functions) => functions.full(key, base, operands),
            MergeOperator::AddNumbers => Some(sum(base.into_iter().chain(operands.iter().copied()))),
        }
    }

    /// The operand that stands for several, oldest first; `None` if the operator makes none.
    pub(crate) fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            MergeOperator::User(functions) => functions.partial(key, operands),
            MergeOperator::AddNumbers => Some(sum(operands.iter().copied())),
        }
    }
}

fn sum<'a>(numbers: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    numbers.map(number).fold(0, u64::wrapping_add).to_le_bytes().to_vec()
}

impl Functions {
    fn full(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let full = self.full?;
        let (starts, lengths) = apart(operands);
        let base_start = base.map_or(std::ptr::null(), |base| base.as_ptr().cast());
        let (mut success, mut len) = (0, 0);
        // SAFETY: the user's function, with the user's pointer, lists of as many operands as is said, and
        // places for its results that are there during the call.
        let value = unsafe {
            full(
                self.state.pointer(),
                key.as_ptr().cast(),
                key.len(),
                base_start,
                base.map_or(0, <[u8]>::len),
                starts.as_ptr(),
                lengths.as_ptr(),
                c_int::try_from(operands.len()).ok()?,
                &raw mut success,
                &raw mut len,
            )
        };
        self.taken(value, len, success)
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial = self.partial?;
        let (starts, lengths) = apart(operands);
        let (mut success, mut len) = (0, 0);
        // SAFETY: as in `full`.
        let value = unsafe {
            partial(
                self.state.pointer(),
                key.as_ptr().cast(),
                key.len(),
                starts.as_ptr(),
                lengths.as_ptr(),
                c_int::try_from(operands.len()).ok()?,
                &raw mut success,
                &raw mut len,
            )
        };
        self.taken(value, len, success)
    }

    /// A copy of what a function returned, which is freed as the user asked for.
    fn taken(&self, value: *mut c_char, len: usize, success: u8) -> Option<Vec<u8>> {
        let result = (success != 0).then(|| copied(value, len));
        match self.delete_value {
            // SAFETY: the user's function, with what the user's other function returned.
            Some(delete) => unsafe { delete(self.state.pointer(), value, len) },
            // SAFETY: without such a function it is memory of the C library, or null.
            None => unsafe { libc::free(value.cast()) },
        }
        result
    }
}

/// Starts and lengths of byte strings, as C functions take them.
fn apart(strings: &[&[u8]]) -> (Vec<*const c_char>, Vec<usize>) {
    strings.iter().map(|string| (string.as_ptr().cast(), string.len())).unzip()
}

export! {
    fn rocksdb_mergeoperator_create(
        state: *mut c_void,
        destructor: Destructor,
        full: FullMerge,
        partial: PartialMerge,
        delete_value: DeleteValue,
        name: Name,
    ) -> Option<Box<MergeOperator>> {
        let state = State::new(state, destructor);
        let name = state.name(name);
        Some(Box::new(MergeOperator::User(Functions { state, full, partial, delete_value, name })))
    }

    fn rocksdb_mergeoperator_destroy(operator: Option<Box<MergeOperator>>) {
        drop(operator);
    }
}

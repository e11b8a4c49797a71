//! Objects with values that C callers only read: job infos, table properties. `abi.toml` has their fields;
//! the macros here make a struct of them, and a function for each field. Lists and texts are lent for as long
//! as their object lives.

use std::ffi::c_char;

use crate::ffi::types::{Out, Slice};

/// A text that callers borrow: bytes with a length, and a zero behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LentText(Vec<u8>);

impl Default for LentText {
    fn default() -> Self {
        LentText(vec![0])
    }
}

impl From<&[u8]> for LentText {
    fn from(bytes: &[u8]) -> Self {
        let mut words = Vec::with_capacity(bytes.len() + 1);
        words.extend_from_slice(bytes);
        words.push(0);
        LentText(words)
    }
}

impl From<&str> for LentText {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for LentText {
    fn from(text: String) -> Self {
        text.as_bytes().into()
    }
}

impl LentText {
    /// The bytes, without the zero.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - 1]
    }

    /// Where they begin; their number goes to a place.
    pub(crate) fn lend(&self, len: Out<'_, usize>) -> *const c_char {
        Slice::of(self.bytes()).parts(len)
    }
}

/// The type of a field.
macro_rules! value_type {
    (number $kind:ty) => { $kind };
    (text) => { $crate::ffi::value_objects::LentText };
    (texts) => { Vec<$crate::ffi::value_objects::LentText> };
    (failure) => { Option<$crate::ffi::failure::Failure> };
    (part $of:ty) => { $of };
    (parts $of:ty) => { Vec<$of> };
}

/// The function that reads a field. A null object, and a place that a list does not have, give zero or null.
macro_rules! value_getter {
    ($object:ident $field:ident $name:ident number $kind:ty) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(object: Option<&$object>) -> $kind {
            object.map_or(<$kind>::default(), |object| object.$field)
        }
    };
    ($object:ident $field:ident $name:ident text) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            object: Option<&$object>,
            len: $crate::ffi::types::Out<'_, usize>,
        ) -> *const std::ffi::c_char {
            $crate::ffi::value_objects::lent(object.map(|object| &object.$field), len)
        }
    };
    ($object:ident $field:ident $name:ident texts) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            object: Option<&$object>,
            at: usize,
            len: $crate::ffi::types::Out<'_, usize>,
        ) -> *const std::ffi::c_char {
            $crate::ffi::value_objects::lent(object.and_then(|object| object.$field.get(at)), len)
        }
    };
    ($object:ident $field:ident $name:ident failure) => {
        export! {
            fn $name(object: Option<&$object>, error: ErrPtr<'_>) {
                object.and_then(|object| object.$field.clone()).map_or(Ok(()), Err)
            }
        }
    };
    ($object:ident $field:ident $name:ident part $of:ty) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(object: Option<&$object>) -> Option<&$of> {
            object.map(|object| &object.$field)
        }
    };
    ($object:ident $field:ident $name:ident parts $of:ty) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(object: Option<&$object>, at: usize) -> Option<&$of> {
            object.and_then(|object| object.$field.get(at))
        }
    };
}

/// An object of values.
macro_rules! values {
    ($object:ident { $( $field:ident : ( $($kind:tt)* ) $name:ident ; )* }) => {
        /// Values that are read by name.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $object {
            $( pub(crate) $field: value_type!($($kind)*), )*
        }

        $( value_getter! { $object $field $name $($kind)* } )*
    };
}

/// Tells how long a list of an object of values is.
macro_rules! count {
    ($name:ident $object:ident $field:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(object: Option<&$object>) -> usize {
            object.map_or(0, |object| object.$field.len())
        }
    };
}

/// A text that is there, or null and no length.
pub(crate) fn lent(words: Option<&LentText>, len: Out<'_, usize>) -> *const c_char {
    match words {
        Some(words) => words.lend(len),
        None => {
            crate::ffi::types::put(len, 0);
            std::ptr::null()
        }
    }
}

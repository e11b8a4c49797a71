//! The macros of generated modules: for fields of objects, objects that have only fields, stubs, and second
//! names.

use crate::ffi::failure::{Failure, Result};

/// Fields that can be set by name, from text, and written as text.
pub(crate) trait Named {
    /// Sets the field `name`, in lower case; `None` if there is no such field.
    fn set_text(&mut self, name: &str, text: &str) -> Option<Result<()>>;

    /// All fields with their values, in the order of their names.
    fn values(&self) -> Vec<(&'static str, FieldValue)>;
}

/// An object that may keep something that follows from its fields.
pub(crate) trait Changed {
    /// Called after a field was set.
    fn changed(&mut self) {}
}

/// The value of an option field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FieldValue {
    /// Of a type that flags have.
    Byte(u8),
    Whole(i128),
    Real(f64),
}

/// A value of a field as text has it.
pub(crate) trait FromText: Sized {
    /// The value, if the text is one.
    fn from_text(text: &str) -> Option<Self>;

    /// The value, by its kind.
    fn to_value(self) -> FieldValue;

    /// The value as the setter of `name` keeps it.
    fn kept(self, _name: &str) -> Self {
        self
    }
}

/// Values that C has as `unsigned char`, and that are more than flags.
pub(crate) const SMALL_NUMBERS: [&str; 3] =
    ["block_protection_bytes_per_key", "bottommost_level_compaction", "memtable_protection_bytes_per_key"];

/// The value that `text` is for the field `name`.
pub(crate) fn parsed<T: FromText>(name: &str, text: &str) -> Result<T> {
    T::from_text(text).ok_or_else(|| Failure::invalid(format_args!("option {name}={text}: no value of it")))
}

/// A whole number: a word, or digits with K, M, G or T behind them, powers of 1024.
fn whole(text: &str) -> Option<i128> {
    if let Some(number) = crate::ffi::option_words::number(text) {
        return Some(number);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    digits.parse::<i128>().ok()?.checked_mul(1 << shift)
}

macro_rules! whole_numbers {
    ($($kind:ty),*) => { $(
        impl FromText for $kind {
            fn from_text(text: &str) -> Option<Self> {
                whole(text)?.try_into().ok()
            }

            fn to_value(self) -> FieldValue {
                FieldValue::Whole(self as i128)
            }
        }
    )* };
}

whole_numbers!(i8, i32, u32, i64, u64, usize);

impl FromText for u8 {
    fn from_text(text: &str) -> Option<Self> {
        whole(text)?.try_into().ok()
    }

    fn to_value(self) -> FieldValue {
        FieldValue::Byte(self)
    }

    /// As in RocksDB a flag that is set is 1, whatever it was set to.
    fn kept(self, name: &str) -> Self {
        if SMALL_NUMBERS.contains(&name) { self } else { u8::from(self != 0) }
    }
}

impl FromText for f64 {
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_value(self) -> FieldValue {
        FieldValue::Real(self)
    }
}

/// Values of an object by name, each with what a new object has, and the functions that set and get it. A
/// null object takes nothing and has zeros.
macro_rules! option_fields {
    (plain $object:ident $fields:ident { $($rows:tt)* }) => {
        /// An object of nothing but fields.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $object {
            pub(crate) fields: $fields,
        }

        impl $crate::ffi::option_fields::Changed for $object {}

        option_fields! { own $object $fields { $($rows)* } }
    };
    (own $object:ident $fields:ident { $( $field:ident : $kind:ty = $default:expr
        $(, set $set:ident $set_kind:ty)?
        $(, get $get:ident $get_kind:ty)?
        $(, get_as $as:ident $as_kind:ty)? ; )* }) => {
        /// Options that are set and got by name.
        #[derive(Clone, Debug)]
        pub(crate) struct $fields {
            $( pub(crate) $field: $kind, )*
        }

        impl $crate::ffi::option_fields::Named for $fields {
            fn set_text(&mut self, name: &str, text: &str) -> Option<$crate::ffi::failure::Result<()>> {
                match name {
                    $( stringify!($field) => {
                        Some($crate::ffi::option_fields::parsed(name, text).map(|value| self.$field = value))
                    } )*
                    _ => None,
                }
            }

            fn values(&self) -> Vec<(&'static str, $crate::ffi::option_fields::FieldValue)> {
                vec![$( (stringify!($field), $crate::ffi::option_fields::FromText::to_value(self.$field)), )*]
            }
        }

        impl Default for $fields {
            fn default() -> Self {
                $fields { $( $field: $default, )* }
            }
        }

        $( $(
            #[unsafe(no_mangle)]
            extern "C" fn $set(object: Option<&mut $object>, value: $set_kind) {
                if let Some(object) = object {
                    object.fields.$field = $crate::ffi::option_fields::FromText::kept(value, stringify!($field));
                    $crate::ffi::option_fields::Changed::changed(object);
                }
            }
        )?
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $get(object: Option<&$object>) -> $get_kind {
                object.map_or(<$get_kind>::default(), |object| object.fields.$field)
            }
        )?
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $as(object: Option<&$object>) -> $as_kind {
                object.map_or(0, |object| object.fields.$field as $as_kind)
            }
        )? )*
    };
}

/// Makes an object of nothing but fields.
macro_rules! create {
    ($name:ident $object:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> Box<$object> {
            Box::default()
        }
    };
}

/// Frees an object of nothing but fields.
macro_rules! destroy {
    ($name:ident $object:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(object: Option<Box<$object>>) {
            drop(object);
        }
    };
}

/// A function that is exported and does nothing (`nothing`), nothing because it is not there yet (`silent`),
/// or says by name that it is not there (`failing`: it has an error as its last argument, which is not
/// listed).
macro_rules! stub {
    (failing $name:ident ( $($kind:ty),* ) $(-> $result:ty)?) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($( _: $kind, )* error: *mut *mut std::ffi::c_char) $(-> $result)? {
            // SAFETY: the C caller keeps to the header.
            let error = unsafe { $crate::ffi::arguments::ErrPtr::from_c(error) };
            error.report(|| Err($crate::ffi::failure::Failure::not_implemented(stringify!($name))))
        }
    };
    ($word:ident $name:ident ( $($kind:ty),* ) $(-> $result:ty)?) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($( _: $kind ),*) $(-> $result)? {
            <stub!(@ $($result)?) as $crate::ffi::types::Absent>::absent()
        }
    };
    (@) => { () };
    (@ $result:ty) => { $result };
}

/// A function of this library under another name.
macro_rules! name {
    ($name:ident of $of:ident ( $($argument:ident : $kind:ty),* ) $(-> $result:ty)?) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
            unsafe extern "C" {
                fn $of($($argument: $kind),*) $(-> $result)?;
            }
            // SAFETY: the table has one type for both, and the check of the table holds the other function
            // against it; what the caller passes is passed on.
            unsafe { $of($($argument),*) }
        }
    };
}

//! The macro that exports functions under their C names, and exported functions of no other module.

use std::ffi::c_void;

/// Exports functions under their names. An argument whose type [`arguments`](crate::ffi::arguments) lists is
/// passed by C as a pointer; the body gets it as a slice or a string under the same name. Functions that
/// take an [`ErrPtr`](crate::ffi::arguments::ErrPtr) named `error` have a body that returns a `Result`.
macro_rules! export {
    ($( $(#[$meta:meta])* fn $name:ident ( $($arguments:tt)* ) $(-> $result:ty)? $body:block )*) => { $(
        export! { @ [$(#[$meta])*] $name [] [] [$($arguments)*] [$($result)?] $body }
    )* };

    // An argument with a pointer: its C type joins the done ones, and its conversion the list of those.
    (@ $meta:tt $name:ident [$($done:tt)*] [$($made:tt)*]
        [$key:ident : Bytes<'_>, $len:ident : usize $(, $($rest:tt)*)?] $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $key: *const u8, $len: usize,]
            [$($made)* $key = (bytes($key, $len));] [$($($rest)*)?] $result $body }
    };
    (@ $meta:tt $name:ident [$($done:tt)*] [$($made:tt)*]
        [$key:ident : BytesOrNull<'_>, $len:ident : usize $(, $($rest:tt)*)?] $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $key: *const u8, $len: usize,]
            [$($made)* $key = (bytes_or_null($key, $len));] [$($($rest)*)?] $result $body }
    };
    (@ $meta:tt $name:ident [$($done:tt)*] [$($made:tt)*]
        [$keys:ident : List<'_, Bytes<'_>>[$count:ident], $lens:ident : List<'_, usize> $(, $($rest:tt)*)?]
        $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $keys: *const *const u8, $lens: *const usize,]
            [$($made)* $keys = (byte_strings($keys, $lens, $count));] [$($($rest)*)?] $result $body }
    };
    (@ $meta:tt $name:ident [$($done:tt)*] [$($made:tt)*]
        [$list:ident : List<'_, $kind:ty>[$count:ident] $(, $($rest:tt)*)?] $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $list: *const $kind,]
            [$($made)* $list = (list($list, $count));] [$($($rest)*)?] $result $body }
    };
    (@ $meta:tt $name:ident [$($done:tt)*] [$($made:tt)*]
        [$list:ident : OutList<'_, $kind:ty>[$count:ident] $(, $($rest:tt)*)?] $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $list: *mut $kind,]
            [$($made)* $list = (places($list, $count));] [$($($rest)*)?] $result $body }
    };
    (@ $meta:tt $name:ident [$($done:tt)*] [$($made:tt)*]
        [$text:ident : Text<'_> $(, $($rest:tt)*)?] $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $text: *const std::ffi::c_char,]
            [$($made)* $text = (Text::from_c($text));] [$($($rest)*)?] $result $body }
    };
    (@ $meta:tt $name:ident [$($done:tt)*] [$($made:tt)*]
        [$memory:ident : Returned<$kind:ty> $(, $($rest:tt)*)?] $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $memory: *mut $kind,]
            [$($made)* $memory = (Returned::from_c($memory));] [$($($rest)*)?] $result $body }
    };
    (@ $meta:tt $name:ident [$($done:tt)*] [$($made:tt)*]
        [$list:ident : ReturnedList<$kind:ty>[$count:ident] $(, $($rest:tt)*)?] $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $list: *mut *mut $kind,]
            [$($made)* $list = (ReturnedList::from_c($list, $count));] [$($($rest)*)?] $result $body }
    };

    // The error is the last one.
    (@ [$($meta:tt)*] $name:ident [$($done:tt)*] [$($value:ident = ($($made:tt)*);)*] [error: ErrPtr<'_> $(,)?]
        [$($result:ty)?] $body:block) => {
        $($meta)*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($done)* error: *mut *mut std::ffi::c_char) $(-> $result)? {
            // SAFETY: the C caller keeps to the header, which asks what these functions ask.
            $( let $value = unsafe { $crate::ffi::arguments::$($made)* }; )*
            // SAFETY: the C caller keeps to the header.
            let error = unsafe { $crate::ffi::arguments::ErrPtr::from_c(error) };
            error.report(move || -> $crate::ffi::failure::Result<_> { $body })
        }
    };

    // Any other argument.
    (@ $meta:tt $name:ident [$($done:tt)*] $made:tt [$argument:ident : $kind:ty $(, $($rest:tt)*)?]
        $result:tt $body:block) => {
        export! { @ $meta $name [$($done)* $argument: $kind,] $made [$($($rest)*)?] $result $body }
    };

    // A function without pointers to convert, and one with.
    (@ [$($meta:tt)*] $name:ident [$($done:tt)*] [] [] [$($result:ty)?] $body:block) => {
        $($meta)*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($done)*) $(-> $result)? {
            $crate::ffi::types::guarded(move || $body)
        }
    };
    (@ [$($meta:tt)*] $name:ident [$($done:tt)*] [$($value:ident = ($($made:tt)*);)+] [] [$($result:ty)?]
        $body:block) => {
        $($meta)*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($done)*) $(-> $result)? {
            // SAFETY: the C caller keeps to the header, which asks what these functions ask.
            $( let $value = unsafe { $crate::ffi::arguments::$($made)* }; )+
            $crate::ffi::types::guarded(move || $body)
        }
    };
}

export! {
    /// Tells this library from RocksDB's own, for programs that must not take the one for the other. No
    /// function of the interface: it is in no header.
    fn terrane_librocksdb() -> std::ffi::c_int {
        1
    }
}

export! {
    /// Frees what this library gave out.
    fn rocksdb_free(memory: Returned<c_void>) {
        memory.free();
    }
}

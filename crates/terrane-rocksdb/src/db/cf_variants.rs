//! Functions that exist twice, for the default column family and `_cf` with a handle of one, and the column
//! family that such a call is about.

use std::sync::Arc;

use crate::callbacks::order::Order;
use crate::db::{Database, Family, FamilyHandle, families};
use crate::ffi::failure::{Given, Result};

/// Which column family a function is about.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    /// The default one.
    Default,
    /// That of a handle.
    Handle(Option<&'a FamilyHandle>),
}

impl<'a> Target<'a> {
    /// Its number; none without a handle.
    pub(crate) fn id(self) -> Option<u32> {
        match self {
            Target::Default => Some(0),
            Target::Handle(handle) => handle.map(|handle| handle.family.id()),
        }
    }

    /// The order of its keys, as far as the handle tells it.
    pub(crate) fn order(self) -> Option<&'a Order> {
        match self {
            Target::Default => None,
            Target::Handle(handle) => handle.map(|handle| &handle.family.order),
        }
    }

    /// The handle of the call; none for the default column family.
    pub(crate) fn handle(self) -> Option<&'a FamilyHandle> {
        match self {
            Target::Default => None,
            Target::Handle(handle) => handle,
        }
    }

    /// The column family of an open database.
    pub(crate) fn family(self, database: Option<&'a Database>) -> Result<&'a Arc<Family>> {
        match self {
            Target::Default => Ok(database.given()?.default_family()),
            Target::Handle(handle) => Ok(&handle.given()?.family),
        }
    }
}

/// Exports pairs of functions with one body: `fn NAME | NAME_cf(FIRST; REST) as TARGET { BODY }`. `NAME_cf`
/// takes a handle of a column family between the arguments FIRST and REST; TARGET names the [`Target`] in the
/// body.
macro_rules! cf_variants {
    ($(
        fn $name:ident | $cf_name:ident ( $($first:ident : $kind:ty),+ ; $($rest:tt)* )
        $(-> $result:ty)? as $target:ident $body:block
    )*) => { $(
        export! {
            fn $name($($first: $kind,)+ $($rest)*) $(-> $result)? {
                let $target = $crate::db::cf_variants::Target::Default;
                $body
            }
        }
        export! {
            fn $cf_name(
                $($first: $kind,)+ handle: Option<&$crate::db::FamilyHandle>, $($rest)*
            ) $(-> $result)? {
                let $target = $crate::db::cf_variants::Target::Handle(handle);
                $body
            }
        }
    )* };
}

/// Which column families the keys of a function belong to.
#[derive(Clone, Copy)]
pub(crate) enum Targets<'a> {
    /// All of them to the default one.
    Default,
    /// Each to that of its handle.
    Handles(&'a [Option<&'a FamilyHandle>]),
}

impl<'a> Targets<'a> {
    /// The column family of each of so many keys.
    pub(crate) fn families(self, database: &'a Database, key_count: usize) -> Result<Vec<&'a Family>> {
        match self {
            Targets::Default => {
                let family: &Family = database.default_family();
                Ok(vec![family; key_count])
            }
            Targets::Handles(handles) => families(handles),
        }
    }
}

/// Exports pairs of functions with one body for many keys, as [`cf_variants!`] does for one: `NAME_cf` takes
/// a list of handles behind FIRST, one for each of COUNT keys. REST begins with COUNT.
macro_rules! cf_list_variants {
    ($(
        fn $name:ident | $cf_name:ident (
            $($first:ident : $kind:ty),+ ; $count:ident : usize, $($rest:tt)*
        ) as $targets:ident $body:block
    )*) => { $(
        export! {
            fn $name($($first: $kind,)+ $count: usize, $($rest)*) {
                let $targets = $crate::db::cf_variants::Targets::Default;
                $body
            }
        }
        export! {
            fn $cf_name(
                $($first: $kind,)+
                handles: List<'_, Option<&$crate::db::FamilyHandle>>[$count],
                $count: usize,
                $($rest)*
            ) {
                let $targets = $crate::db::cf_variants::Targets::Handles(handles);
                $body
            }
        }
    )* };
}

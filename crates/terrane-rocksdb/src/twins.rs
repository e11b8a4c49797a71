//! Functions of which there are two: one for the default column family, and one that takes a handle.

use std::sync::Arc;

use crate::database::{Database, Family, FamilyHandle};
use crate::failure::{Given, Result};
use crate::order::Order;

/// Which column family a function is about.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    /// The default one.
    Default,
    /// That of a handle.
    Handle(Option<&'a FamilyHandle>),
}

impl<'a> Of<'a> {
    /// Its number; none without a handle.
    pub(crate) fn id(self) -> Option<u32> {
        match self {
            Of::Default => Some(0),
            Of::Handle(handle) => handle.map(|handle| handle.family.id()),
        }
    }

    /// The order of its keys, as far as the handle tells it.
    pub(crate) fn order(self) -> Option<&'a Order> {
        match self {
            Of::Default => None,
            Of::Handle(handle) => handle.map(|handle| &handle.family.order),
        }
    }

    /// The column family of an open database.
    pub(crate) fn family(self, database: &'a Database) -> Result<&'a Arc<Family>> {
        match self {
            Of::Default => Ok(database.default_family()),
            Of::Handle(handle) => Ok(&handle.given()?.family),
        }
    }
}

/// Exports pairs of functions with one body each. The second one of a pair takes a handle of a column family where the semicolon
/// stands; what follows `as` names the [`Of`] that the body is given.
macro_rules! twins {
    ($(
        fn $name:ident | $of_family:ident ( $($first:ident : $kind:ty),+ ; $($rest:tt)* )
        $(-> $result:ty)? as $of:ident $body:block
    )*) => { $(
        export! {
            fn $name($($first: $kind,)+ $($rest)*) $(-> $result)? {
                let $of = $crate::twins::Of::Default;
                $body
            }
        }
        export! {
            fn $of_family(
                $($first: $kind,)+ handle: Option<&$crate::database::FamilyHandle>, $($rest)*
            ) $(-> $result)? {
                let $of = $crate::twins::Of::Handle(handle);
                $body
            }
        }
    )* };
}

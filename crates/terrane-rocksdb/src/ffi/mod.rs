//! The boundary to C: argument and result types, export macros, errors, and the macros behind the generated
//! functions.

pub(crate) mod arguments;
#[macro_use]
pub(crate) mod export;
pub(crate) mod failure;
pub(crate) mod option_words;
pub(crate) mod types;
#[macro_use]
pub(crate) mod option_fields;
#[macro_use]
pub(crate) mod value_objects;

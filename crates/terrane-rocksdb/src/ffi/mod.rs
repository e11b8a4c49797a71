//! The boundary to C: argument and result types, export macros, errors, and the macros behind the generated
//! functions.

#[macro_use]
pub(crate) mod types;
pub(crate) mod failure;
pub(crate) mod option_words;
#[macro_use]
pub(crate) mod option_fields;
#[macro_use]
pub(crate) mod value_objects;

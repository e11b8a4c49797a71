//! Tables of typed keys and values: a thin layer over [`Table`](crate::Table).
//!
//! A [`TypedTable`] encodes keys so that their bytes are ordered as their values are, and decodes what it
//! reads. Everything else is that of the table below it, which stays in reach ([`TypedTable::table`]).
//!
//! ```
//! # fn main() -> terrane::Result<()> {
//! use terrane::typed::TypedTable;
//!
//! let db = terrane::Db::open_in_memory()?;
//! // Sensor and second to temperature.
//! let readings: TypedTable<(String, u64), f64> = TypedTable::new(db.table_or_create("readings")?)?;
//! readings.put(("roof", 60), 18.5)?;
//! readings.put(("roof", 120), 18.25)?;
//! readings.put(("cellar", 60), 11.0)?;
//!
//! assert_eq!(readings.get(("roof", 60))?, Some(18.5));
//! assert_eq!(readings.range(("roof", 61)..("roof", u64::MAX)).count(), 1);
//! for row in readings.prefix(("roof",)) {
//!     let ((sensor, second), degrees) = row?;
//!     println!("{sensor} {second}: {degrees}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Types of keys
//!
//! | type | its order | its bytes at the end of a key | in front of another part |
//! |---|---|---|---|
//! | `u8` to `u128` | by number | big-endian | the same |
//! | `i8` to `i128` | by number | big-endian with the sign bit turned over | the same |
//! | `f32`, `f64` | as `total_cmp` has it | the same; all bits of a negative one turned over | the same |
//! | `bool`, `char` | as Rust has it | one byte, four bytes | the same |
//! | `[u8; N]` | by bytes | themselves | the same |
//! | `String`, `Vec<u8>` | by bytes | themselves | each byte 0 as 0, 255; behind them 0, 1 |
//! | `Option<T>` | `None` first | 0, or 1 and those of `T` | the same |
//! | tuples of two to four | part by part | all parts but the last in front of another | all parts so |
//!
//! So a table of strings or of bytes has the keys that an untyped one has, and a `u64` is what `to_be_bytes`
//! returns. A type of the program's own has [`EncodeKey`] and [`DecodeKey`], in most cases by those of its
//! fields.
//!
//! Calls take a key as a reference to it or to what it borrows as (`"roof"` for a `String`), numbers also
//! themselves, and tuples of these: see [`KeyOf`].
//!
//! # Types of values
//!
//! Numbers (little-endian), `bool`, `char`, `()`, `[u8; N]`, `String` and `Vec<u8>` (their bytes);
//! [`Json`] with the feature `json`; and whatever has [`EncodeValue`] and [`DecodeValue`].
//!
//! # Another type than that of the writer
//!
//! The database stores no types. Bytes that are not a value of the type are refused with
//! [`Kind::Invalid`](crate::Kind::Invalid); bytes that happen to be one are read as one. A program that
//! changes a type writes the rows again, into another table in most cases.

#[cfg(feature = "json")]
mod json;
mod key;
mod key_of;
mod range;
mod rows;
mod source;
mod table;
mod value;

#[cfg(feature = "json")]
pub use json::Json;
pub use key::{DecodeKey, EncodeKey};
pub use key_of::{KeyOf, PrefixOf};
pub use range::TypedBounds;
pub use rows::Rows;
pub use source::{ReadSource, WriteTarget};
pub use table::TypedTable;
pub use value::{DecodeValue, EncodeValue, ValueOf};

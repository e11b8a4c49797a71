//! Values as JSON, for whatever serde knows.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{DecodeValue, EncodeValue, ValueOf};
use crate::{Error, Result};

/// A value that is stored as JSON; with the feature `json`. Written by reference or by value, and read by
/// value.
///
/// Fields may be added and left out later as serde's attributes say, and every program can read the rows.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use std::collections::BTreeMap;
/// use terrane::typed::{Json, TypedTable};
/// let db = terrane::Db::open_in_memory()?;
/// let carts: TypedTable<u64, Json<BTreeMap<String, u32>>> = TypedTable::new(db.table_or_create("carts")?)?;
/// let cart = BTreeMap::from([("apples".to_owned(), 3)]);
/// carts.put(7, Json(&cart))?;
/// assert_eq!(carts.get(7)?.expect("it was put").0, cart);
/// assert_eq!(carts.table().get(7u64.to_be_bytes())?.expect("it was put"), r#"{"apples":3}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json<T>(pub T);

impl<T: Serialize> EncodeValue for Json<T> {
    fn encode_value(&self, to: &mut Vec<u8>) -> Result<()> {
        serde_json::to_writer(to, &self.0)
            .map_err(|why| Error::invalid(format!("the value is not JSON: {why}")))
    }
}

impl<T: Serialize + DeserializeOwned> DecodeValue for Json<T> {
    fn decode_value(bytes: Vec<u8>) -> Option<Self> {
        serde_json::from_slice(&bytes).ok().map(Json)
    }
}

impl<T: Serialize> ValueOf<Json<T>> for Json<T> {
    fn add_value(&self, to: &mut Vec<u8>) -> Result<()> {
        self.encode_value(to)
    }
}

impl<T: Serialize> ValueOf<Json<T>> for Json<&T> {
    fn add_value(&self, to: &mut Vec<u8>) -> Result<()> {
        self.encode_value(to)
    }
}

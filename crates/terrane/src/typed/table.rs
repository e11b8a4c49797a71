//! A table with typed keys and values.

mod reads;
mod writes;

use std::fmt;
use std::marker::PhantomData;

use terrane_base::key_order::BYTEWISE;

use super::{KeyOf, TypedBounds, ValueOf};
use crate::{Error, KeyBounds, Result, Table};

/// A [`Table`] whose keys are `K` and whose values are `V`: see [the module](super).
///
/// Cheap to clone; usable from any thread, as the table is.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::typed::TypedTable;
/// let db = terrane::Db::open_in_memory()?;
/// let names: TypedTable<u64, String> = TypedTable::new(db.table_or_create("names")?)?;
/// names.put(7, "ada")?;
/// names.put(8, "grace")?;
/// for row in names.range(8..) {
///     let (id, name) = row?;
///     assert_eq!((id, name.as_str()), (8, "grace"));
/// }
/// # Ok(())
/// # }
/// ```
pub struct TypedTable<K, V> {
    table: Table,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> TypedTable<K, V> {
    /// The table with these types. The database stores no types: a program names the same ones each time.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// use terrane::typed::TypedTable;
    /// let db = terrane::Db::open_in_memory()?;
    /// let users: TypedTable<u64, String> = TypedTable::new(db.table_or_create("users")?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a table with an order of keys other than `bytewise`, in which encoded keys would not be
    /// ordered as the keys are.
    pub fn new(table: Table) -> Result<Self> {
        let typed = TypedTable { table, types: PhantomData };
        if !typed.is_ordered() {
            let (name, order) = (typed.table.name(), typed.table.key_order());
            return Err(Error::invalid(format!(
                "table {name:?} has the key order {order:?}: a typed table takes one with the key order {BYTEWISE:?}"
            )));
        }
        Ok(typed)
    }

    /// The table itself, for all that has no typed form: options, merges, cursors, estimates.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// use terrane::typed::TypedTable;
    /// let db = terrane::Db::open_in_memory()?;
    /// let users: TypedTable<u64, String> = TypedTable::new(db.table_or_create("users")?)?;
    /// assert_eq!(users.table().name(), "users");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The bytes of a key, for calls of the table itself.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// use terrane::{counter, TableOptions};
    /// use terrane::typed::TypedTable;
    /// let db = terrane::Db::open_in_memory()?;
    /// let visits = db.create_table("visits", &TableOptions::new().merge_operator("counter"))?;
    /// let visits: TypedTable<(String, u64), Vec<u8>> = TypedTable::new(visits)?;
    /// visits.table().merge(visits.key(("ada", 7)), counter::encode(1))?;
    /// assert!(visits.contains(("ada", 7))?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn key(&self, key: impl KeyOf<K>) -> Vec<u8> {
        let mut bytes = Vec::new();
        key.add(&mut bytes);
        bytes
    }

    fn value(value: &impl ValueOf<V>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        value.add_value(&mut bytes)?;
        Ok(bytes)
    }

    fn bounds(&self, range: &impl TypedBounds<K>) -> impl KeyBounds {
        debug_assert!(self.is_ordered(), "encoded bounds are those of the keys in this order only");
        (range.lower(), range.upper())
    }

    /// The check of `new`, again: a table keeps its order.
    fn is_ordered(&self) -> bool {
        self.table.key_order() == BYTEWISE
    }
}

impl<K, V> Clone for TypedTable<K, V> {
    fn clone(&self) -> Self {
        TypedTable { table: self.table.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for TypedTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedTable").field("name", &self.table.name()).finish_non_exhaustive()
    }
}

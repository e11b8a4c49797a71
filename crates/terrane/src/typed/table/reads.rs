//! Reads of a typed table.

use super::TypedTable;
use crate::Result;
use crate::typed::rows::{Rows, decode_value};
use crate::typed::{DecodeKey, DecodeValue, KeyOf, PrefixOf, ReadSource, TypedBounds};

impl<K: DecodeKey, V: DecodeValue> TypedTable<K, V> {
    /// The value of `key`.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let ages: TypedTable<String, u32> = TypedTable::new(db.table_or_create("ages")?)?;
    /// ages.put("ada", 36)?;
    /// assert_eq!(ages.get("ada")?, Some(36));
    /// assert_eq!(ages.get("grace")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get), and `Invalid` for bytes that are not a `V`.
    pub fn get(&self, key: impl KeyOf<K>) -> Result<Option<V>> {
        let key = self.key(key);
        self.decoded(&key, self.table.get(&key)?)
    }

    /// The values of several keys, each as [`TypedTable::get`] has it; faster than one after the other.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let ages: TypedTable<String, u32> = TypedTable::new(db.table_or_create("ages")?)?;
    /// ages.put("ada", 36)?;
    /// assert_eq!(ages.multi_get(["ada", "grace"])?, [Some(36), None]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`TypedTable::get`].
    pub fn multi_get<Q: KeyOf<K>>(&self, keys: impl IntoIterator<Item = Q>) -> Result<Vec<Option<V>>> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| self.key(key)).collect();
        let values = self.table.multi_get(&keys)?;
        keys.iter().zip(values).map(|(key, value)| self.decoded(key, value)).collect()
    }

    /// Returns true if `key` has a value, which is not decoded.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let primes: TypedTable<u32, ()> = TypedTable::new(db.table_or_create("primes")?)?;
    /// primes.put(7, ())?;
    /// assert!(primes.contains(7)? && !primes.contains(8)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Table::get`](crate::Table::get).
    pub fn contains(&self, key: impl KeyOf<K>) -> Result<bool> {
        self.table.contains(self.key(key))
    }

    /// The rows of a range, in order, from both ends.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let ages: TypedTable<String, u32> = TypedTable::new(db.table_or_create("ages")?)?;
    /// ages.put("ada", 36)?;
    /// ages.put("grace", 85)?;
    /// let rows: Vec<(String, u32)> = ages.range("b"..).collect::<terrane::Result<_>>()?;
    /// assert_eq!(rows, [("grace".to_owned(), 85)]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn range(&self, range: impl TypedBounds<K>) -> Rows<K, V> {
        Rows::new(self.table.range(self.bounds(&range)), self.table.name())
    }

    /// The rows whose keys begin with these parts, or, for strings and bytes, with this prefix.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let visits: TypedTable<(String, u64), ()> = TypedTable::new(db.table_or_create("visits")?)?;
    /// visits.put(("ada", 7), ())?;
    /// visits.put(("adam", 8), ())?;
    /// assert_eq!(visits.prefix(("ada",)).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn prefix(&self, prefix: impl PrefixOf<K>) -> Rows<K, V> {
        debug_assert!(self.is_ordered(), "keys with these parts lie side by side in this order only");
        let mut bytes = Vec::new();
        prefix.add_prefix(&mut bytes);
        Rows::new(self.table.prefix(bytes), self.table.name())
    }

    /// All rows.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let ages: TypedTable<String, u32> = TypedTable::new(db.table_or_create("ages")?)?;
    /// ages.put("ada", 36)?;
    /// for row in &ages {
    ///     let (name, age) = row?;
    ///     println!("{name}: {age}");
    /// }
    /// assert_eq!(ages.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn iter(&self) -> Rows<K, V> {
        Rows::new(self.table.iter(), self.table.name())
    }

    /// The value of `key` as a snapshot, a transaction or a batch has it.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let ages: TypedTable<String, u32> = TypedTable::new(db.table_or_create("ages")?)?;
    /// let before = db.snapshot();
    /// ages.put("ada", 36)?;
    /// assert_eq!(ages.get_in(&before, "ada")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As those of the source, and `Invalid` for bytes that are not a `V`.
    pub fn get_in(&self, source: &impl ReadSource, key: impl KeyOf<K>) -> Result<Option<V>> {
        let key = self.key(key);
        self.decoded(&key, source.get_row(&self.table, &key)?)
    }

    /// The rows of a range as a snapshot, a transaction or a batch has them.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # use terrane::typed::TypedTable;
    /// # let db = terrane::Db::open_in_memory()?;
    /// let ages: TypedTable<String, u32> = TypedTable::new(db.table_or_create("ages")?)?;
    /// let before = db.snapshot();
    /// ages.put("ada", 36)?;
    /// assert_eq!(ages.range_in(&before, ..)?.count(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As those of the source.
    #[track_caller]
    pub fn range_in<'s, S: ReadSource>(
        &self,
        source: &'s S,
        range: impl TypedBounds<K>,
    ) -> Result<Rows<K, V, S::Rows<'s>>> {
        Ok(Rows::new(source.rows(&self.table, self.bounds(&range))?, self.table.name()))
    }

    fn decoded(&self, key: &[u8], value: Option<crate::Value>) -> Result<Option<V>> {
        value.map(|value| decode_value(self.table.name(), key, value.into_vec())).transpose()
    }
}

/// [`TypedTable::iter`].
impl<K: DecodeKey, V: DecodeValue> IntoIterator for &TypedTable<K, V> {
    type Item = Result<(K, V)>;
    type IntoIter = Rows<K, V>;

    #[track_caller]
    fn into_iter(self) -> Rows<K, V> {
        self.iter()
    }
}

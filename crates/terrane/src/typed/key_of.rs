//! The forms in which a caller names a key or the beginning of one, without making an owned key.

use std::borrow::Borrow;

use super::key::EncodeKey;

/// A key of type `K`, in a form that a caller has: a reference to a `K` or to what it borrows as, a number
/// itself, or a tuple of these.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::typed::TypedTable;
/// let db = terrane::Db::open_in_memory()?;
/// let ages: TypedTable<String, u32> = TypedTable::new(db.table_or_create("ages")?)?;
/// ages.put("ada", 36)?; // as `&str`
/// assert_eq!(ages.get(&String::from("ada"))?, Some(36));
///
/// let visits: TypedTable<(String, u64), ()> = TypedTable::new(db.table_or_create("visits")?)?;
/// visits.put(("ada", 7), ())?;
/// assert!(visits.contains(&("ada".to_owned(), 7))?);
/// # Ok(())
/// # }
/// ```
pub trait KeyOf<K> {
    /// Adds the bytes as a part of a key: [`EncodeKey::encode_part`].
    ///
    /// ```
    /// use terrane::typed::KeyOf;
    /// let mut key = Vec::new();
    /// KeyOf::<String>::add_part(&"a", &mut key);
    /// assert_eq!(key, b"a\x00\x01");
    /// ```
    fn add_part(&self, to: &mut Vec<u8>);

    /// Adds the bytes as the end of a key: [`EncodeKey::encode`].
    ///
    /// ```
    /// use terrane::typed::KeyOf;
    /// let mut key = Vec::new();
    /// KeyOf::<(String, u8)>::add(&("a", 7), &mut key);
    /// assert_eq!(key, b"a\x00\x01\x07");
    /// ```
    fn add(&self, to: &mut Vec<u8>);
}

impl<K: Borrow<T>, T: EncodeKey + ?Sized> KeyOf<K> for &T {
    fn add_part(&self, to: &mut Vec<u8>) {
        self.encode_part(to);
    }

    fn add(&self, to: &mut Vec<u8>) {
        self.encode(to);
    }
}

/// Types that callers pass by value.
macro_rules! by_value {
    ($($key:ty),*) => {
        $(impl KeyOf<$key> for $key {
            fn add_part(&self, to: &mut Vec<u8>) {
                self.encode_part(to);
            }

            fn add(&self, to: &mut Vec<u8>) {
                self.encode(to);
            }
        })*
    };
}

by_value!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64, bool, char);

/// The beginning of keys of type `K`: the first parts of a tuple, as a tuple, or the beginning of a string or
/// of bytes.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use terrane::typed::TypedTable;
/// let db = terrane::Db::open_in_memory()?;
/// let edges: TypedTable<(u32, String, u64), ()> = TypedTable::new(db.table_or_create("edges")?)?;
/// edges.put((1, "knows", 2), ())?;
/// edges.put((1, "knows", 3), ())?;
/// edges.put((1, "knew", 4), ())?;
/// assert_eq!(edges.prefix((1,)).count(), 3);
/// assert_eq!(edges.prefix((1, "knows")).count(), 2);
/// # Ok(())
/// # }
/// ```
pub trait PrefixOf<K> {
    /// Adds the bytes that such keys begin with.
    ///
    /// ```
    /// use terrane::typed::PrefixOf;
    /// let mut prefix = Vec::new();
    /// PrefixOf::<(u16, String)>::add_prefix(&(7,), &mut prefix);
    /// assert_eq!(prefix, [0, 7]);
    /// ```
    fn add_prefix(&self, to: &mut Vec<u8>);
}

impl PrefixOf<String> for &str {
    fn add_prefix(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.as_bytes());
    }
}

impl PrefixOf<Vec<u8>> for &[u8] {
    fn add_prefix(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }
}

/// Tuples as keys.
macro_rules! keys {
    ($($($part:ident $form:ident $field:tt)* | $last:ident $last_form:ident $at:tt;)*) => {
        $(
            impl<$($part, $form: KeyOf<$part>,)* $last, $last_form: KeyOf<$last>>
                KeyOf<($($part,)* $last,)> for ($($form,)* $last_form,)
            {
                fn add_part(&self, to: &mut Vec<u8>) {
                    $(self.$field.add_part(to);)*
                    self.$at.add_part(to);
                }

                fn add(&self, to: &mut Vec<u8>) {
                    $(self.$field.add_part(to);)*
                    self.$at.add(to);
                }
            }
        )*
    };
}

keys! {
    A P 0 | B Q 1;
    A P 0 B Q 1 | C R 2;
    A P 0 B Q 1 C R 2 | D S 3;
}

/// Tuples as the beginnings of longer ones.
macro_rules! prefixes {
    ($($($part:ident $form:ident $field:tt)* | $($more:ident)*;)*) => {
        $(
            impl<$($part, $form: KeyOf<$part>,)* $($more),*>
                PrefixOf<($($part,)* $($more,)*)> for ($($form,)*)
            {
                fn add_prefix(&self, to: &mut Vec<u8>) {
                    $(self.$field.add_part(to);)*
                }
            }
        )*
    };
}

prefixes! {
    A P 0 | B;
    A P 0 | B C;
    A P 0 | B C D;
    A P 0 B Q 1 | C;
    A P 0 B Q 1 | C D;
    A P 0 B Q 1 C R 2 | D;
}

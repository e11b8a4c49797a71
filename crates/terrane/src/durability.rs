//! How long a write waits.

/// The failures that a write survives once its call has returned.
///
/// ```
/// use terrane::Durability;
/// # fn main() -> terrane::Result<()> {
/// let db = terrane::Db::open_in_memory()?;
/// db.default_table().put_with("order 7", "paid", Durability::Synced)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// The death of the process. After a loss of power, the remaining ones of such writes are a prefix of
    /// their order; [`Db::sync`](crate::Db::sync), and every later write that is [`Durability::Synced`],
    /// makes them durable.
    #[default]
    Buffered,
    /// A loss of power as well: the write waits until it is on disk.
    Synced,
}

impl Durability {
    pub(crate) fn is_synced(self) -> bool {
        self == Durability::Synced
    }
}

/// The former names of the two.
#[expect(non_upper_case_globals, reason = "they were variants")]
impl Durability {
    /// [`Durability::Buffered`].
    #[deprecated(note = "use `Durability::Buffered`")]
    #[doc(hidden)]
    pub const No: Durability = Durability::Buffered;
    /// [`Durability::Synced`].
    #[deprecated(note = "use `Durability::Synced`")]
    #[doc(hidden)]
    pub const Yes: Durability = Durability::Synced;
}

/// The former name of [`Durability`], which hides the trait `Sync` of the prelude wherever it is imported.
#[deprecated(note = "use `Durability`")]
#[doc(hidden)]
pub type Sync = Durability;

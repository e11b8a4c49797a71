//! The content of a lane's slot: a request and its answer, in reused buffers.

use terrane_base::{Batch, Error, SeqNo};

use crate::Values;

/// A scan ends after this many bytes of keys and values, 16 MiB, even if there are more rows.
pub const SCAN_BYTES_MAX: usize = 16 << 20;
/// Buffers that have grown beyond this are given back.
const KEPT_BYTES_MAX: usize = 4096;

/// The request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ask {
    #[default]
    Get,
    /// A put or a delete.
    Write,
    /// A batch of any number of records.
    Batch,
    MultiGet,
    /// Forward or backward.
    Scan(bool),
}

/// See the head of the file.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) ticket: u64,
    pub(super) ask: Ask,
    pub(super) is_synced: bool,
    /// True if a get found its key.
    pub(super) is_found: bool,
    /// The table, but of a batch.
    pub(super) place: u32,
    /// The key, or the keys of a multi-get back to back, or where a scan begins.
    pub(super) key: Vec<u8>,
    /// The value, or the rows of a scan back to back.
    pub(super) value: Vec<u8>,
    /// The changes of a write.
    pub(super) batch: Batch,
    /// The position of the write in commit order.
    pub(super) seq: SeqNo,
    pub(super) error: Option<Error>,
    /// Fields that few requests need.
    pub(super) rare: Box<Rare>,
}

/// Fields of multi-gets, scans and batches over several tables.
#[derive(Default)]
pub(super) struct Rare {
    /// Ends of the keys of a multi-get, or of keys and values of rows, in turn.
    pub(super) ends: Vec<usize>,
    pub(super) values: Values,
    pub(super) rows_max: usize,
    /// Tables of a batch.
    pub(super) places: Vec<u32>,
}

impl Rare {
    fn bytes(&self) -> usize {
        self.values.iter().flatten().map(<[u8]>::len).sum::<usize>() + size_of_val(&*self.ends)
    }
}

impl Slot {
    /// Sets the answer of a get.
    #[inline]
    pub(super) fn found(&mut self, value: Option<&[u8]>) {
        self.is_found = value.is_some();
        self.value.clear();
        self.value.extend_from_slice(value.unwrap_or_default());
    }

    /// The keys of a multi-get.
    pub(super) fn keys(&self) -> Vec<&[u8]> {
        pieces(&self.key, &self.rare.ends).collect()
    }

    /// The answer as the user gets it.
    #[inline]
    pub(super) fn answer(&mut self) -> Result<Answer<'_>, Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        Ok(match self.ask {
            Ask::Get => Answer::Value(self.is_found.then_some(&*self.value)),
            Ask::Write | Ask::Batch => Answer::Written(self.seq),
            Ask::MultiGet => Answer::Values(&self.rare.values),
            Ask::Scan(_) => Answer::Rows(Rows { bytes: &self.value, ends: &self.rare.ends }),
        })
    }

    /// Gives back large buffers; the answer was collected.
    #[inline]
    pub(super) fn shed(&mut self) {
        if self.key.capacity() > KEPT_BYTES_MAX {
            self.key = Vec::new();
        }
        if self.value.capacity() > KEPT_BYTES_MAX {
            self.value = Vec::new();
        }
        if self.batch.bytes().len() > KEPT_BYTES_MAX {
            self.batch = Batch::new();
        }
        let is_rare = matches!(self.ask, Ask::MultiGet | Ask::Scan(_));
        if is_rare && self.rare.bytes() > KEPT_BYTES_MAX {
            *self.rare = Rare::default();
        }
    }
}

/// Pieces of `bytes` that end where `ends` say.
fn pieces<'b>(bytes: &'b [u8], ends: &'b [usize]) -> impl Iterator<Item = &'b [u8]> {
    ends.iter().scan(0, move |start, end| Some(&bytes[std::mem::replace(start, *end)..*end]))
}

/// An answer, borrowed while it is visited.
///
/// ```
/// use terrane::cores::Answer;
/// fn show(answer: terrane::Result<Answer<'_>>) -> String {
///     match answer {
///         Ok(Answer::Value(value)) => format!("{value:?}"),
///         Ok(Answer::Values(values)) => format!("{} values", values.len()),
///         Ok(Answer::Written(seq)) => format!("commit {seq}"),
///         Ok(Answer::Rows(rows)) => format!("{} rows", rows.len()),
///         Err(error) => error.to_string(),
///     }
/// }
/// assert_eq!(show(Ok(Answer::Value(None))), "None");
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// Of a get: the value, if the key has one.
    Value(Option<&'a [u8]>),
    /// Of a multi-get: the values in the order of the keys, of one moment.
    Values(&'a Values),
    /// Of a put, a delete or a batch: its position in the order of commits.
    Written(SeqNo),
    /// Of a scan.
    Rows(Rows<'a>),
}

/// The rows of a scan, in its direction.
///
/// ```
/// # let db = terrane::Db::open_in_memory()?;
/// # let table = db.default_table();
/// use terrane::cores::{Answer, Cores};
/// table.put("a", "1")?;
/// table.put("b", "2")?;
/// let cores = Cores::builder(&db).cores(2).table(table).build()?;
/// let mut session = cores.session()?;
/// session.scan(table, "a", 10)?;
/// session.finish(&mut |_, answer| {
///     if let Ok(Answer::Rows(rows)) = answer {
///         rows.iter().for_each(|(key, value)| println!("{key:?} = {value:?}"));
///         assert_eq!(rows.len(), 2);
///     }
/// });
/// # Ok::<(), terrane::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Rows<'a> {
    /// Number of values.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::{Answer, Cores};
    /// table.put("b", "2")?;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.scan(table, "a", 10)?;
    /// session.finish(&mut |_, answer| {
    ///     if let Ok(Answer::Rows(rows)) = answer {
    ///         assert_eq!(rows.len(), 1);
    ///     }
    /// });
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Returns true if there is no row.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::{Answer, Cores};
    /// table.put("b", "2")?;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.scan(table, "a", 10)?;
    /// session.finish(&mut |_, answer| {
    ///     if let Ok(Answer::Rows(rows)) = answer {
    ///         assert!(!rows.is_empty());
    ///     }
    /// });
    /// # Ok::<(), terrane::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Keys and values.
    ///
    /// ```
    /// # let db = terrane::Db::open_in_memory()?;
    /// # let table = db.default_table();
    /// use terrane::cores::{Answer, Cores};
    /// table.put("b", "2")?;
    /// let cores = Cores::builder(&db).cores(2).table(table).build()?;
    /// let mut session = cores.session()?;
    /// session.scan(table, "a", 10)?;
    /// session.finish(&mut |_, answer| {
    ///     if let Ok(Answer::Rows(rows)) = answer {
    ///         assert_eq!(rows.iter().next(), Some((&b"b"[..], &b"2"[..])));
    ///     }
    /// });
    /// # Ok::<(), terrane::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut pieces = pieces(self.bytes, self.ends);
        std::iter::from_fn(move || Some((pieces.next()?, pieces.next()?)))
    }
}

impl std::fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("len", &self.len()).finish_non_exhaustive()
    }
}

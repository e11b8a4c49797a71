//! An open database: its column families, its handles, and all that callers do with it outside transactions.
//!
//! * [`open`]: opens a database from a path and options, and attaches listeners, statistics and info files.
//! * [`plain`]: reads and writes of keys. [`maintain`]: flush, compaction, changed options. [`timestamps`]:
//!   column families whose keys have user timestamps. [`wal`]: the log of commits. [`families`],
//!   [`snapshots`], [`secondary_views`].
//! * [`copies`]: checkpoints, backups, exports, files of rows. [`metadata`], [`observe`]: what a database
//!   consists of and reports.
//! * [`cf_variants`]: functions that exist with and without a column family handle. [`listener`]: calls event
//!   listeners; [`asked`]: for which jobs callers asked. [`transaction_registry`], [`lock_count`]: what a
//!   database keeps for its transactions.

pub(crate) mod asked;
#[macro_use]
pub(crate) mod cf_variants;
pub(crate) mod copies;
pub(crate) mod families;
pub(crate) mod listener;
pub(crate) mod lock_count;
pub(crate) mod maintain;
pub(crate) mod metadata;
pub(crate) mod notices;
pub(crate) mod observe;
pub(crate) mod open;
pub(crate) mod plain;
pub(crate) mod secondary_views;
pub(crate) mod snapshots;
pub(crate) mod timestamps;
pub(crate) mod transaction_registry;
pub(crate) mod wal;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use terrane::Table;

use crate::callbacks::operator_registry::{Slot, Slots};
use crate::callbacks::order::Order;
use crate::callbacks::transform::Transform;
use crate::db::asked::Asked;
use crate::db::timestamps::History;
use crate::db::transaction_registry::Transactions;
use crate::extents::Owner;
use crate::extents::levels::Levels;
use crate::ffi::failure::{Failure, Given, Result};
use crate::options::database::Options;
use crate::options::objects::statistics::Statistics;

use crate::db::notices::Notices;
use crate::db::open::attachments::Attached;
use crate::db::secondary_views::Views;

/// The column family that every database has.
pub(crate) const DEFAULT: &str = "default";

/// An open database. Clones are of the same one.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) db: terrane::Db,
    pub(crate) is_read_only: bool,
    default: Arc<Family>,
    families: Arc<RwLock<BTreeMap<u32, Arc<Family>>>>,
    slots: Arc<Slots>,
    pub(crate) transactions: Arc<Transactions>,
    attached: Arc<Attached>,
}

/// A column family of an open database.
pub(crate) struct Family {
    pub(crate) table: Table,
    pub(crate) slot: Arc<Slot>,
    pub(crate) transform: Option<Arc<Transform>>,
    /// How its keys are ordered.
    pub(crate) order: Order,
    /// Its versions, if its keys have timestamps.
    pub(crate) history: Option<Arc<History>>,
    /// True if puts and deletes of a batch may be kept as records: keys and values lie there as they are
    /// given.
    pub(crate) takes_records: bool,
    pub(crate) asked: Asked,
    name: CString,
    /// The options that it was opened with, and what was changed of them since.
    options: Mutex<Options>,
    /// Where calls are counted, if they are.
    pub(crate) statistics: Option<Arc<Statistics>>,
    /// How many iterators its database has on families with a handle of a cache, which is asked for it; none
    /// where it has none.
    pub(crate) iterators: Option<Arc<AtomicUsize>>,
    /// In a secondary: where its table in the newest view is.
    views: Option<Arc<Views>>,
    /// True if point reads are more than those of its table: statistics, history or views. Kept, so that a
    /// read has one look.
    reads_specially: bool,
    /// The log lines that its database has written about options without an effect.
    notices: Arc<Notices>,
}

/// The column families of a database, by weak references.
#[derive(Clone, Debug)]
pub(crate) struct Families {
    default: Weak<Family>,
    others: Weak<RwLock<BTreeMap<u32, Arc<Family>>>>,
}

impl Families {
    /// The family of this name, while it is there.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Family>> {
        if name == DEFAULT {
            return self.default.upgrade();
        }
        let others = self.others.upgrade()?;
        named(&others, name)
    }
}

fn named(families: &RwLock<BTreeMap<u32, Arc<Family>>>, name: &str) -> Option<Arc<Family>> {
    let families = families.read().unwrap_or_else(PoisonError::into_inner);
    families.values().find(|family| family.table.name() == name).cloned()
}

/// A handle of a column family.
pub(crate) struct FamilyHandle {
    pub(crate) family: Arc<Family>,
}

impl Family {
    /// As properties of its extents tell it.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner { id: self.id(), name: self.table.name(), comparator: self.order.name() }
    }

    /// Returns true if a point read is counted, or is not one of the table as it is.
    #[inline]
    pub(crate) fn reads_specially(&self) -> bool {
        debug_assert_eq!(self.reads_specially, self.has_special_reads(), "what reads need has changed");
        self.reads_specially
    }

    fn has_special_reads(&self) -> bool {
        self.statistics.is_some() || self.history.is_some() || self.is_followed()
    }

    /// Lets it be seen by `views`, if there are any.
    fn see_by(&mut self, views: Option<Arc<Views>>) {
        self.views = views;
        self.reads_specially = self.has_special_reads();
    }

    /// Its number, by which batches name it.
    pub(crate) fn id(&self) -> u32 {
        self.table.number()
    }

    /// Its options as they are now.
    fn options(&self) -> Options {
        self.options.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How its levels are numbered for callers while the deepest one that has extents is `deepest`.
    pub(crate) fn levels(&self, deepest: usize) -> Levels {
        Levels::new(&self.options.lock().unwrap_or_else(PoisonError::into_inner).fields, deepest)
    }

    fn set_options(&self, options: Options) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }
}

impl Database {
    /// The family of a handle, or the default one where a function takes none.
    pub(crate) fn default_family(&self) -> &Arc<Family> {
        &self.default
    }

    /// The family with this number.
    pub(crate) fn family(&self, id: u32) -> Option<Arc<Family>> {
        if id == self.default.id() {
            return Some(self.default.clone());
        }
        self.families.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Calls `look` with the family with this number, or with none where there is no such one.
    #[inline]
    pub(crate) fn with_family<R>(&self, id: u32, look: impl FnOnce(Option<&Family>) -> R) -> R {
        // The default one, which stays, is not counted for it.
        match id == self.default.id() {
            true => look(Some(&self.default)),
            false => look(self.family(id).as_deref()),
        }
    }

    /// All families.
    pub(crate) fn families(&self) -> Vec<Arc<Family>> {
        let families = self.families.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(self.default.clone()).chain(families.values().cloned()).collect()
    }

    fn add_family(&self, family: Family) -> Arc<Family> {
        let family = Arc::new(family);
        let mut families = self.families.write().unwrap_or_else(PoisonError::into_inner);
        families.insert(family.id(), family.clone());
        family
    }

    fn remove_family(&self, id: u32) {
        self.families.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    pub(crate) fn family_named(&self, name: &str) -> Option<Arc<Family>> {
        if name == DEFAULT {
            return Some(self.default.clone());
        }
        named(&self.families, name)
    }

    /// The families, not kept.
    pub(crate) fn weak_families(&self) -> Families {
        Families { default: Arc::downgrade(&self.default), others: Arc::downgrade(&self.families) }
    }

    /// Refuses a change of a database that was opened for reading.
    pub(crate) fn refuse_if_read_only(&self) -> Result<()> {
        if self.is_read_only {
            return Err(Failure::not_implemented("Not supported operation in read only mode."));
        }
        Ok(())
    }
}

/// The family that a function is about: that of the handle, which must be there.
pub(crate) fn family(handle: Option<&FamilyHandle>) -> Result<&Family> {
    Ok(&handle.given()?.family)
}

/// The families of a list of handles.
pub(crate) fn families<'a>(handles: &[Option<&'a FamilyHandle>]) -> Result<Vec<&'a Family>> {
    handles.iter().map(|handle| family(*handle)).collect()
}

//! Factories of compaction filters: a user function makes one filter for each compaction.

use std::ffi::c_void;
use std::sync::Arc;

use terrane::{CompactionContext, FilterDecision};

use crate::callbacks::compaction_filter::CompactionFilter;
use crate::callbacks::{Destructor, Name, State};

/// Description of a compaction for the function that makes its filter; lent during the call.
#[derive(Debug)]
pub(crate) struct FilterContext(CompactionContext);

/// Makes a filter, which goes over to the caller, or none.
pub(crate) type MakeFilter =
    Option<unsafe extern "C" fn(*mut c_void, *mut FilterContext) -> Option<Box<CompactionFilter>>>;

/// A factory of the user. As a filter it keeps what it is shown: where it makes none, nothing is filtered.
#[derive(Debug)]
pub(crate) struct FilterFactory {
    state: State,
    make: MakeFilter,
    name: String,
}

impl terrane::CompactionFilter for FilterFactory {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, _key: &[u8], _value: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }

    fn for_compaction(&self, compaction: CompactionContext) -> Option<Arc<dyn terrane::CompactionFilter>> {
        let mut context = FilterContext(compaction);
        // SAFETY: the user's function, with the user's pointer and a context that is there during the call;
        // what it returns is a handle that this library made, or null.
        let made = unsafe { (self.make?)(self.state.pointer(), &raw mut context) };
        made.map(|made| made.filter as _)
    }
}

export! {
    fn rocksdb_compactionfilterfactory_create(
        state: *mut c_void,
        destructor: Destructor,
        make: MakeFilter,
        name: Name,
    ) -> Option<Box<FilterFactory>> {
        let state = State::new(state, destructor);
        let name = state.name(name);
        Some(Box::new(FilterFactory { state, make, name }))
    }

    fn rocksdb_compactionfilterfactory_destroy(factory: Option<Box<FilterFactory>>) {
        drop(factory);
    }

    fn rocksdb_compactionfiltercontext_is_full_compaction(context: Option<&FilterContext>) -> u8 {
        u8::from(context.is_some_and(|context| context.0.is_full))
    }

    fn rocksdb_compactionfiltercontext_is_manual_compaction(context: Option<&FilterContext>) -> u8 {
        u8::from(context.is_some_and(|context| context.0.is_manual))
    }
}

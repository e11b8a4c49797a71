//! Persistent memory: the allocator, and regions that stand in for persistent memory.
//!
//! Layer 3: everything here works on [`PmRegion`](terrane_device::pm::PmRegion) by static dispatch, so that
//! a region of the device costs what it costs without this crate.
//!
//! * [`Halloc`]: hands out zones of chunks and objects; one flush and one fence each. [`FreeRuns`]: which
//!   chunks are free.
//! * [`Emulated`]: a region that charges the costs of a [`Profile`] and counts.
//! * [`Shadowed`]: a region that knows which crash images the hardware may leave at any moment; [`Omitting`]
//!   leaves out flushes and fences of it.

mod emulated;
mod halloc;
mod shadowed;

pub use emulated::{Counts, Emulated, Profile};
pub use halloc::{FreeRuns, Halloc, Object, Owner, Recovered, Reserve, Salvaged, VolatileZone, Zone};
pub use shadowed::{CrashImages, Cut, Event, LineState, Omitting, Shadowed, Step};

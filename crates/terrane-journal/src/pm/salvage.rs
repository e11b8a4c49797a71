//! The segments of a pool that is damaged, or whose database is: for a repair, which only reads.
//!
//! A segment lies in the zone that a sound owner word names for its file. Where the word is damaged, or the
//! superblock is and no word can be proven, the front of a segment says which file it is and how long. Groups
//! prove themselves: a segment that was trimmed long ago, or one of another database, gives no record.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use terrane_base::{Error, Kind, Result};
use terrane_device::pm::{PmRegion, ReadOnly};
use terrane_device::{Disk, PosixDisk};
use terrane_format::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use terrane_pmem::{Halloc, Owner, Zone};

use super::disk::ZoneDisk;
use super::pool::{chunk_bytes_of, named};

/// The readable part of a pool.
#[derive(Debug)]
pub struct SalvagedPool {
    /// The device of the database, with the segments that were found; stores to them are refused.
    pub disk: Arc<dyn Disk>,
    /// Damage in the pool outside of segments. Whether it took a segment with it is seen where the manifest
    /// lists one that was not found.
    pub damage: Vec<Error>,
}

impl SalvagedPool {
    /// Reads the pool at `path` of the database on `base` whose segments are files of `dir`.
    ///
    /// # Errors
    /// `NotFound` if it is missing; `Busy` if a process has it open; `Invalid` if it is of another version of
    /// the format, or too short for any; `Io`.
    pub fn open(path: &Path, base: Arc<dyn Disk>, dir: &Path) -> Result<SalvagedPool> {
        SalvagedPool::read(path, base, dir).map_err(|error| named(error, path))
    }

    fn read(path: &Path, base: Arc<dyn Disk>, dir: &Path) -> Result<SalvagedPool> {
        if !PosixDisk::new().exists(path)? {
            let message = "there is no pool of persistent memory: name the one of the damaged database";
            return Err(Error::new(Kind::NotFound, message));
        }
        let region = ReadOnly::open(path)?;
        let chunk_bytes = chunk_bytes_of(region.len());
        let (halloc, found) = Halloc::salvage(region, chunk_bytes)?;
        let mut damage: Vec<Error> = found.damage.into_iter().map(|error| named(error, path)).collect();
        let (mut files, mut zones) = (BTreeSet::new(), Vec::new());
        for zone in found.zones {
            if files.insert(zone.owner()) {
                zones.push(zone);
            } else {
                let message = format!("two zones belong to segment file {}", zone.owner().0);
                damage.push(named(Error::corrupt(message).at("persistent memory", zone.offset()), path));
            }
        }
        // What no word names must not take the name of what one does.
        let unclear = if terrane_base::planted!(PassOverUnclearZones) { Vec::new() } else { found.unclear };
        for offset in unclear {
            if let Some(zone) = segment_at(&halloc, offset)
                && files.insert(zone.owner())
            {
                zones.push(zone);
            }
        }
        assert!(files.len() == zones.len(), "a file has one zone: the disk refuses a second one");
        let disk = ZoneDisk::new(base, dir, halloc, zones, false)?;
        Ok(SalvagedPool { disk: Arc::new(disk), damage })
    }
}

/// The zone of the segment whose front is at `offset`, if there is a sound one.
fn segment_at(halloc: &Halloc<ReadOnly>, offset: u64) -> Option<Zone> {
    let mut front = [0; SEGMENT_HEADER_BYTES];
    halloc.region().read_checked(offset, &mut front).ok()?;
    let (header, _) = SegmentHeader::decode(&front).ok()?;
    halloc.presumed_zone(offset, header.bytes, Owner(header.file))
}

//! The pins of a database, by which it keeps objects for clones.
//!
//! Pins are few and never change: each is read once. One that cannot be read stops the collection, since
//! its objects are unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use terrane_base::sync::Mutex;
use terrane_base::{Error, Kind, Result};

use super::object::CLONE_OBJECT_BYTES_MAX;
use super::{CloneObject, CloneTag, PinNames};
use crate::bucket::names;
use crate::{Bucket, Create};

/// The pins that were read, each with the epochs and numbers that it keeps.
#[derive(Debug, Default)]
pub(crate) struct PinnedFiles(Mutex<BTreeMap<u128, BTreeSet<(u64, u32)>>>);

impl PinnedFiles {
    /// The epochs and numbers of the files that a pin keeps now. One list.
    ///
    /// # Errors
    /// `Corrupt`, naming the pin, if one is damaged; `Invalid` if a later version wrote it; `Io`, `Busy`.
    pub(crate) fn now(&self, bucket: &dyn Bucket, prefix: &str) -> Result<BTreeSet<(u64, u32)>> {
        let files = PinNames::new(prefix);
        let listed = bucket.list(&files.folder, None)?;
        let there: BTreeSet<u128> = listed.iter().filter_map(|object| files.parse(&object.name)).collect();
        let mut known = self.0.lock().clone();
        known.retain(|nonce, _| there.contains(nonce));
        for nonce in there {
            if known.contains_key(&nonce) {
                continue;
            }
            // A clone released it between the list and its reading.
            let Some(pin) = read(bucket, &files, nonce)? else { continue };
            let kept = pin.objects.keys().map(|name| (name.epoch, name.number)).collect();
            known.insert(nonce, kept);
        }
        let all: BTreeSet<(u64, u32)> = known.values().flatten().copied().collect();
        debug_assert!(all.iter().all(|(_, number)| *number > 0), "decoded pins name files");
        *self.0.lock() = known;
        Ok(all)
    }
}

/// A pin; `None` if it is not there.
fn read(bucket: &dyn Bucket, files: &PinNames, nonce: u128) -> Result<Option<CloneObject>> {
    let name = files.of(nonce);
    let at = |error: Error| match error.kind() {
        Kind::Corrupt | Kind::Invalid => error.at(names::place(bucket.url(), &name), 0),
        _ => error,
    };
    let bytes = match bucket.get(&name, CLONE_OBJECT_BYTES_MAX) {
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let pin = CloneObject::decode(&bytes).map_err(at)?;
    if (pin.tag, pin.nonce) == (CloneTag::Pin, nonce) {
        return Ok(Some(pin));
    }
    Err(at(Error::corrupt("the pin is not the one of its name")))
}

/// All pins of the database below `prefix`, each with the time of its creation by the clock of the object
/// store; a damaged one is an error in its place.
///
/// # Errors
/// `Io`, `Busy`.
pub(crate) fn pin_objects(
    bucket: &dyn Bucket,
    prefix: &str,
) -> Result<Vec<(u128, Duration, Result<CloneObject>)>> {
    let files = PinNames::new(prefix);
    let mut pins = Vec::new();
    for object in bucket.list(&files.folder, None)? {
        let Some(nonce) = files.parse(&object.name) else { continue };
        match read(bucket, &files, nonce) {
            Ok(None) => {}
            Ok(Some(pin)) => pins.push((nonce, object.modified, Ok(pin))),
            Err(error) if matches!(error.kind(), Kind::Corrupt | Kind::Invalid) => {
                pins.push((nonce, object.modified, Err(error)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(pins)
}

/// Deletes the pin of a reference; returns false if it is not there. The clone's address and folder are
/// `home`, as its pin has them.
///
/// # Errors
/// `Corrupt`, naming the pin, if it is damaged or that of another clone, as where a reference was copied to
/// another place; `Io`, `Busy`.
pub(crate) fn take_back(
    bucket: &dyn Bucket,
    prefix: &str,
    reference: &CloneObject,
    home: (&str, &str),
) -> Result<bool> {
    let files = PinNames::new(prefix);
    let Some(pin) = read(bucket, &files, reference.nonce)? else { return Ok(false) };
    let name = files.of(reference.nonce);
    if pin.clone != reference.clone || (pin.url.as_str(), pin.prefix.as_str()) != home {
        let place = names::place(bucket.url(), &name);
        return Err(Error::corrupt("the pin is that of another clone").at(place, 0));
    }
    bucket.delete(&[name])?;
    Ok(true)
}

/// Creates a pin; returns when, by the clock of the object store.
///
/// # Errors
/// `Busy` if it was deleted at once; those of the bucket.
pub(crate) fn keep(bucket: &dyn Bucket, prefix: &str, pin: &CloneObject) -> Result<Duration> {
    assert!(pin.tag == CloneTag::Pin, "only pins keep objects");
    let files = PinNames::new(prefix);
    let name = files.of(pin.nonce);
    if bucket.create(&name, &pin.encode()?)? == Create::AlreadyExists {
        let place = names::place(bucket.url(), &name);
        return Err(Error::invalid(format!("{place} exists: the random numbers of this machine repeat")));
    }
    let listed = bucket.list(&files.folder, None)?;
    let created = listed.iter().find(|object| object.name == name).map(|object| object.modified);
    created.ok_or_else(|| {
        let place = names::place(bucket.url(), &name);
        Error::new(Kind::Busy, format!("{place} was deleted while the clone was made: try again"))
    })
}

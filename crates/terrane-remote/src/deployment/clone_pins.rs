//! The pins of clones, for people: what there is, and taking one back whose clone is lost.

use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Kind, Result, SeqNo};

use super::Deployment;
use crate::bucket::names;
use crate::clones::{CloneObject, OriginalFile, OriginalNames, Originals, PinNames, pin_objects};
use crate::{Bucket, ManifestFolder};

/// A pin, by which a clone keeps data objects of this database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClonePin {
    /// Its number, by which it is released.
    pub number: u128,
    /// The clone: address of the bucket, then the prefix.
    pub clone: String,
    /// The last commit that the clone began with.
    pub commit: SeqNo,
    /// When the pin was created, by the clock of the object store, since the Unix epoch.
    pub created: Duration,
    /// The objects that it keeps.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Deployment {
    /// The pins of the clones of this database.
    ///
    /// # Errors
    /// `Corrupt`, naming the pin, if one is damaged; `Io`, `Busy`.
    pub fn clone_pins(&self) -> Result<Vec<ClonePin>> {
        if crate::bucket::is_absent(&self.url) {
            return Ok(Vec::new());
        }
        let bucket = self.open_bucket(&Env::real())?;
        self.clone_pins_in(&*bucket)
    }

    /// [`Deployment::clone_pins`] in a bucket that is open.
    ///
    /// # Errors
    /// As there.
    pub fn clone_pins_in(&self, bucket: &dyn Bucket) -> Result<Vec<ClonePin>> {
        let shown = |(number, created, pin): (u128, Duration, Result<CloneObject>)| {
            let pin = pin?;
            let url = if pin.url.is_empty() { &self.url } else { &pin.url };
            let (objects, bytes) = (pin.objects.len() as u64, pin.bytes());
            let (clone, commit) = (names::place(url, &pin.prefix), SeqNo(pin.commit));
            Ok(ClonePin { number, clone, commit, created, objects, bytes })
        };
        pin_objects(bucket, &self.prefix)?.into_iter().map(shown).collect()
    }

    /// Deletes a pin whose clone was deleted. A clone keeps its pin if it is there, cannot be asked, or may
    /// be being made, unless `is_forced`.
    ///
    /// # Errors
    /// `NotFound` if there is no such pin; `Invalid` if the clone is there; `Busy` if the pin is younger than
    /// `garbage_age_s`; `Corrupt`, `Io`.
    pub fn release_clone(&self, number: u128, is_forced: bool) -> Result<ClonePin> {
        let env = Env::real();
        let bucket = self.open_bucket(&env)?;
        self.release_clone_in(bucket, number, is_forced, &env)
    }

    /// [`Deployment::release_clone`] in a bucket that is open.
    ///
    /// # Errors
    /// As there.
    pub fn release_clone_in(
        &self,
        bucket: std::sync::Arc<dyn Bucket>,
        number: u128,
        is_forced: bool,
        env: &Env,
    ) -> Result<ClonePin> {
        let pin = self.clone_pins_in(&*bucket)?.into_iter().find(|pin| pin.number == number);
        let pin = pin.ok_or_else(|| {
            let place = names::place(&self.url, &self.prefix);
            let message = format!("{place} has no pin {number:032x}: `terrane doctor` lists the pins");
            Error::new(Kind::NotFound, message)
        })?;
        if !is_forced {
            self.check_lost(&bucket, number, &pin, env)?;
        }
        assert!(pin.number == number, "the pin that was asked about is deleted");
        bucket.delete(&[PinNames::new(&self.prefix).of(number)])?;
        Ok(pin)
    }

    /// Refuses a pin that its clone may need.
    fn check_lost(
        &self,
        bucket: &std::sync::Arc<dyn Bucket>,
        number: u128,
        pin: &ClonePin,
        env: &Env,
    ) -> Result<()> {
        debug_assert_eq!(pin.number, number, "a pin is found by its number");
        let pins = pin_objects(&**bucket, &self.prefix)?;
        let found = pins.into_iter().find(|(found, ..)| *found == number).map(|(.., pin)| pin);
        let Some(object) = found.transpose()? else { return Ok(()) };
        let unknown = |error: Error| {
            error.context(format!(
                "cannot tell whether the clone {} is lost: make its bucket available here, or use --force if you \
                 know that it is",
                pin.clone
            ))
        };
        let of_clone = match object.url.is_empty() {
            true => bucket.clone(),
            // No bucket, no clone: but a directory of another machine is not here either.
            false if crate::bucket::is_absent(&object.url) => {
                let message = format!("the directory of {} does not exist here", object.url);
                return Err(unknown(Error::new(Kind::Io, message)));
            }
            false => crate::bucket::open_with(&object.url, env, bucket.settings()).map_err(unknown)?,
        };
        let found = ManifestFolder::new(of_clone.clone(), &object.prefix)?.read().map_err(unknown)?;
        let clone = &pin.clone;
        let found = found.filter(|found| found.last.database.0 == object.clone);
        if found.is_some_and(|found| found.state.is_some()) {
            // Its readers may be at an earlier state, so what it names now says too little.
            return Err(Error::invalid(format!(
                "the clone {clone} is there and may read {} objects of this database: it releases its pin itself some \
                 time after it has rewritten them (`terrane compact`); delete the clone first, or it loses data",
                pin.objects
            )));
        }
        if object.url.starts_with("file:") {
            let message =
                format!("{clone} is not there, which says nothing of that directory on another machine");
            return Err(unknown(Error::new(Kind::Io, message)));
        }
        let age = super::clone::bucket_time(bucket, &self.prefix, env)?.saturating_sub(pin.created);
        if age < self.settings.garbage_age {
            return Err(Error::new(
                Kind::Busy,
                format!(
                    "the clone {clone} may be being made just now: its pin is {} s old; release it once it is {} s \
                     old, or use --force if you know that it is lost",
                    age.as_secs(),
                    self.settings.garbage_age.as_secs()
                ),
            ));
        }
        Ok(())
    }

    /// The lines of the doctor about clones: one line for each pin, and one for each original.
    pub(super) fn clone_lines(
        &self,
        bucket: &std::sync::Arc<dyn Bucket>,
        env: &Env,
    ) -> Vec<(String, Result<String>)> {
        let mut lines = Vec::new();
        match pin_objects(&**bucket, &self.prefix) {
            Err(error) => lines.push(("clones".to_owned(), Err(error))),
            Ok(pins) => lines.extend(pins.into_iter().map(|(number, created, pin)| {
                let text = pin.map(|pin| {
                    let url = if pin.url.is_empty() { &self.url } else { &pin.url };
                    format!(
                        "pin {number:032x} of {}: {} objects, {} bytes are kept",
                        super::at::shown(created),
                        pin.objects.len(),
                        pin.bytes()
                    ) + &format!(" for the clone {}", names::place(url, &pin.prefix))
                });
                ("clone".to_owned(), text)
            })),
        }
        match Originals::read(bucket, &self.prefix, env) {
            Err(error) => lines.push(("original".to_owned(), Err(error))),
            Ok(originals) => lines.extend(originals.all.iter().map(|original| {
                let (place, objects) = (original.place(), original.reference.objects.len());
                let text = if *original.is_released.lock() {
                    Ok(format!("{place}: nothing of it is needed, and its pin is released"))
                } else {
                    let files = OriginalNames::new(&self.prefix);
                    let number = original.reference.nonce;
                    let name = files.of(originals.database, number, OriginalFile::Unneeded);
                    let is_unneeded = match bucket.list(&files.folder, None) {
                        Err(error) => Err(error),
                        Ok(listed) => Ok(listed.iter().any(|object| object.name == name)),
                    };
                    let state = |is_unneeded| if is_unneeded { "no longer needed" } else { "may be needed" };
                    let line = is_unneeded.map(|is| {
                        format!("{place}: {objects} objects of it {}, by pin {number:032x}", state(is))
                    });
                    original.check_pin().and(line)
                };
                ("original".to_owned(), text)
            })),
        }
        lines
    }
}

//! A folder of numbered objects, of which a manifest and a journal consist.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use terrane_base::{Error, Kind, Result};
use terrane_format::object::{object_name, parse_object_name};

use super::{Bucket, Listed, names};

/// The folder `<prefix>/<of>`, whose objects have numbers as names.
#[derive(Clone, Debug)]
pub(crate) struct NumberedFolder {
    pub(crate) bucket: Arc<dyn Bucket>,
    path: String,
    /// The name of the folder: "manifest".
    of: &'static str,
}

impl NumberedFolder {
    /// # Errors
    /// `Invalid` if the prefix is not a valid name.
    pub(crate) fn new(bucket: Arc<dyn Bucket>, prefix: &str, of: &'static str) -> Result<NumberedFolder> {
        let path = format!("{prefix}/{of}");
        names::check(&format!("{path}/{}", object_name(1)))?;
        Ok(NumberedFolder { bucket, path, of })
    }

    /// The name of an object.
    pub(crate) fn name(&self, number: u64) -> String {
        format!("{}/{}", self.path, object_name(number))
    }

    /// Where an object lies, for messages.
    pub(crate) fn place_of(&self, number: u64) -> String {
        names::place(self.bucket.url(), &self.name(number))
    }

    /// An error about what an object says, with its place.
    pub(crate) fn at(&self, number: u64, error: Error) -> Error {
        match error.kind() {
            Kind::Corrupt | Kind::Invalid => error.at(self.place_of(number), 0),
            _ => error,
        }
    }

    /// Where it lies, for messages.
    pub(crate) fn place(&self) -> String {
        names::place(self.bucket.url(), &self.path)
    }

    /// The objects by number.
    ///
    /// # Errors
    /// `Corrupt`, naming the object, if one has another name, or a number that no writer comes to (the
    /// formats refuse it, too); `Io`, `Busy`.
    pub(crate) fn list(&self) -> Result<BTreeMap<u64, Listed>> {
        self.list_behind(None)
    }

    /// The objects from the number `first` on, which is 1 at least: one request for each thousand of them.
    ///
    /// # Errors
    /// As [`NumberedFolder::list`].
    pub(crate) fn list_from(&self, first: u64) -> Result<BTreeMap<u64, Listed>> {
        debug_assert!(first > 0, "numbers begin with 1");
        self.list_behind(Some(&self.name(first - 1)))
    }

    fn list_behind(&self, after: Option<&str>) -> Result<BTreeMap<u64, Listed>> {
        let number_of =
            |name: &str| name.strip_prefix(&self.path)?.strip_prefix('/').and_then(parse_object_name);
        let listed = self.bucket.list(&self.path, after)?;
        listed
            .into_iter()
            .map(|object| match number_of(&object.name).filter(|number| *number < u64::MAX / 2) {
                Some(number) => Ok((number, object)),
                None => {
                    let message = format!(
                        "an object that does not belong to a {}: give the database a prefix of its own, or \
                         remove the object",
                        self.of
                    );
                    Err(Error::corrupt(message).at(names::place(self.bucket.url(), &object.name), 0))
                }
            })
            .collect()
    }

    /// Reads whole objects, of these numbers and sizes, all at once.
    ///
    /// # Errors
    /// `Corrupt` if one has more than `bytes_max`; `NotFound`, `Io`, `Busy`.
    pub(crate) fn fetch(&self, wanted: &[(u64, u64)], bytes_max: u64) -> Result<Vec<Bytes>> {
        let begun: Vec<_> = wanted
            .iter()
            .map(|(number, bytes)| {
                if *bytes > bytes_max {
                    let message = format!("{} object of {bytes} bytes: no writer makes one so long", self.of);
                    return Err(self.at(*number, Error::corrupt(message)));
                }
                let whole = std::iter::once(0..*bytes).collect();
                Ok(self.bucket.begin_get_ranges(&self.name(*number), whole))
            })
            .collect::<Result<_>>()?;
        begun.into_iter().map(|read| Ok(read.wait()?.pop().unwrap_or_default())).collect()
    }
}

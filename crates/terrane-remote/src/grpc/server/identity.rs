//! Which bucket it is.
//!
//! The first server of a bucket draws 16 bytes and creates an object with them. Clients name them in each
//! call, so none goes on with another bucket behind the same address.

use terrane_base::env::Random;
use terrane_base::{Error, Result};

use crate::grpc::wire::IDENTITY_BYTES;
use crate::{Bucket, Create};

/// The folder of the service, in which clients create and delete nothing.
pub(super) const FOLDER: &str = ".terrane";
const NAME: &str = ".terrane/identity";

/// The identity of a bucket; drawn if it has none yet.
pub(super) fn of(bucket: &dyn Bucket, random: &dyn Random) -> Result<[u8; IDENTITY_BYTES]> {
    let mut drawn = [0; IDENTITY_BYTES];
    drawn[..8].copy_from_slice(&random.next_u64().to_le_bytes());
    drawn[8..].copy_from_slice(&random.next_u64().to_le_bytes());
    if bucket.create(NAME, &drawn)? == Create::Created {
        return Ok(drawn);
    }
    let found = bucket.get(NAME, IDENTITY_BYTES as u64)?;
    <[u8; IDENTITY_BYTES]>::try_from(&found[..]).map_err(|_| {
        let message = format!("an identity of {} bytes, and it has {IDENTITY_BYTES}", found.len());
        Error::corrupt(message).at(crate::bucket::names::place(bucket.url(), NAME), 0)
    })
}

/// Says whether an object lies in the folder of the service.
pub(super) fn is_reserved(name: &str) -> bool {
    name.split('/').next() == Some(FOLDER)
}

//! The manifest on files passes what every medium must pass.

use std::sync::Arc;

use terrane_base::Kind;
use terrane_device::{Disk, MemDisk};
use terrane_levels::{Manifest, manifest::conformance};

use crate::common::{dir, env};

#[test]
fn files_are_a_medium_of_the_manifest() {
    conformance::run(|| {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        move |settings| match Manifest::open_with(disk.clone(), dir(), settings) {
            Err(error) if error.kind() == Kind::NotFound => {
                Manifest::create_with(disk.clone(), dir(), &env(), Vec::new(), settings)
            }
            opened => opened,
        }
    });
}

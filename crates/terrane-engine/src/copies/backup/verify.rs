//! Verifying a backup: every object of it is read and everything in it checked, as a restore and an opening
//! would.

use terrane_base::{Error, Kind, Result};
use terrane_format::backup::{ObjectKind, bytes_name};
use terrane_format::extent::check;

use crate::copies::backup::Backups;
use crate::copies::backup::create::sound_end;
use crate::copies::backup::objects::{extents_of, object_name};
use crate::copies::backup::progress::{ProgressReporter, Watcher};
use crate::copies::backup::restore::body;

/// A damaged object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackupFinding {
    /// The object, by its name in the place.
    pub object: String,
    /// The error of this backup or object.
    pub error: Error,
}

/// The result of a verification.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The damage; empty if all is well.
    pub findings: Vec<BackupFinding>,
    /// Objects that were read.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Backups {
    /// Reads every object of backup `id` and checks every checksum and all that can be checked of each by
    /// itself. Reads at most `bytes_per_second`; 0 means no ceiling.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Cancelled` by `watcher`; `Io` if the place refuses. Damage is
    /// no error but a finding.
    pub fn verify(&self, id: u64, bytes_per_second: u64, watcher: &mut Watcher<'_>) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let (manifest, state) = match self.load_state(id) {
            Err(error) if matches!(error.kind(), Kind::Corrupt | Kind::Invalid) => {
                let object = object_name(ObjectKind::Manifest, id.into());
                report.findings.push(BackupFinding { object, error });
                return Ok(report);
            }
            loaded => loaded?,
        };
        let mut watch = |progress: &crate::copies::backup::BackupProgress| watcher(progress);
        let mut reporter = ProgressReporter::new(&self.env, bytes_per_second, &mut watch);
        let extents = extents_of(&state);
        let bytes = |of: &mut dyn Iterator<Item = u64>| of.sum::<u64>();
        let all = bytes(&mut extents.values().map(|meta| meta.bytes.into()))
            + bytes(&mut manifest.segments.iter().map(|segment| segment.bytes));
        reporter.begin((extents.len() + manifest.segments.len()) as u64, all)?;
        for (name, meta) in &extents {
            reporter.spend(meta.bytes.into())?;
            let checked = self.read(ObjectKind::Extent, *name, meta.bytes.into()).and_then(|object| {
                let found = check::verify_ordered(body(&object), meta.id, meta.slots, &meta.collation)?;
                match check::is_as_said(found, meta) {
                    true => Ok(()),
                    false => Err(Error::corrupt("it is another extent than the manifest says")),
                }
            });
            report.note(ObjectKind::Extent, *name, meta.bytes.into(), checked)?;
            reporter.done(meta.bytes.into())?;
        }
        for segment in &manifest.segments {
            reporter.spend(segment.bytes)?;
            let checked = self.read(ObjectKind::Segment, segment.name, segment.bytes).and_then(|object| {
                let source = body(&object);
                let is_same = bytes_name(source) == segment.name && source.len() as u64 == segment.bytes;
                match sound_end(source)? {
                    last_seq if is_same && last_seq == segment.last_seq => Ok(()),
                    _ => Err(Error::corrupt("it is another segment than the manifest says")),
                }
            });
            report.note(ObjectKind::Segment, segment.name, segment.bytes, checked)?;
            reporter.done(segment.bytes)?;
        }
        debug_assert_eq!(reporter.progress().bytes_done, all, "every object was read");
        debug_assert_eq!(report.objects, reporter.progress().objects, "every object is in the report");
        Ok(report)
    }
}

impl VerifyReport {
    fn note(&mut self, kind: ObjectKind, name: u128, bytes: u64, checked: Result<()>) -> Result<()> {
        self.objects += 1;
        self.bytes += bytes;
        debug_assert!((self.findings.len() as u64) < self.objects, "an object has one finding at most");
        match checked {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.kind(), Kind::Corrupt | Kind::Invalid) => {
                self.findings.push(BackupFinding { object: object_name(kind, name), error });
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

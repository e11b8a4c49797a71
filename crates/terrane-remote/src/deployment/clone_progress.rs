//! How far the making of a clone is, and a caller that ends it.
//!
//! The caller is asked between the steps, the last time in front of the snapshot that makes the clone: what
//! is ended before that leaves no clone. The replay of the journal is one step.

use std::ops::ControlFlow;
use std::sync::Arc;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Error, Functions, Kind, Result};

use super::Deployment;
use super::at::At;
use super::clone::Cloned;
use super::clone_moment::Moment;
use crate::Bucket;
use crate::bucket::names;

/// How far the making of a clone is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloneProgress {
    /// Bytes of the objects to which the clone is to refer, and of the journal that is replayed for it.
    pub bytes: u64,
    /// Of these, bytes of objects that a pin keeps by now, and of the journal once it was replayed.
    pub bytes_done: u64,
}

/// The caller's look at the progress: it breaks to end the work.
pub type TellClone<'t> = dyn FnMut(&CloneProgress) -> ControlFlow<()> + 't;

/// The progress of one clone, and the caller that looks at it.
pub(super) struct Watch<'t> {
    progress: CloneProgress,
    tell: &'t mut TellClone<'t>,
    /// True once the clone's manifest has its first object, which no other writer has created.
    pub(super) has_begun: bool,
}

impl<'t> Watch<'t> {
    pub(super) fn new(tell: &'t mut TellClone<'t>) -> Watch<'t> {
        Watch { progress: CloneProgress::default(), tell, has_begun: false }
    }

    /// Says what there is to do for a state.
    ///
    /// # Errors
    /// As [`Watch::add`].
    pub(super) fn begin(&mut self, moment: &Moment) -> Result<()> {
        let objects = moment.objects.values().fold(0, |all: u64, bytes| all.saturating_add(*bytes));
        self.progress.bytes = objects.saturating_add(journal_bytes(moment));
        self.add(0)
    }

    /// Says that so many further bytes are done.
    ///
    /// # Errors
    /// `Cancelled` if the caller ends the work.
    pub(super) fn add(&mut self, bytes: u64) -> Result<()> {
        self.progress.bytes_done = self.progress.bytes_done.saturating_add(bytes);
        debug_assert!(self.progress.bytes_done <= self.progress.bytes, "at most all there is to do is done");
        match (self.tell)(&self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(Kind::Cancelled, "its caller ended the clone")),
        }
    }
}

/// Bytes of the segments that are replayed.
pub(super) fn journal_bytes(moment: &Moment) -> u64 {
    let segments = moment.state.segments.values();
    segments.fold(0, |all, segment| all.saturating_add(segment.spec.bytes))
}

impl Deployment {
    /// [`Deployment::clone_to_with`], until `tell` breaks: what was made by then is removed.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use terrane_base::{Functions, Kind, options::Options};
    /// use terrane_remote::Deployment;
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let url = format!("file://{}", dir.path().join("bucket").display());
    /// let deployment = Deployment::new(dir.path().join("journal"), url.clone());
    /// deployment.open()?.close()?;
    /// let copy = Deployment::new(dir.path().join("journal-of-copy"), url);
    /// let copy = Deployment { prefix: "copy".to_owned(), ..copy };
    /// let mut stop = |_: &terrane_remote::CloneProgress| ControlFlow::Break(());
    /// let options = Options::default();
    /// let ended = deployment.clone_to_until(&copy, None, &options, Functions::default(), &mut stop);
    /// assert_eq!(ended.expect_err("it was ended").kind(), Kind::Cancelled);
    /// assert!(deployment.clone_pins()?.is_empty());
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// As there; `Cancelled` if `tell` breaks. The error says so if something could not be removed.
    pub fn clone_to_until(
        &self,
        target: &Deployment,
        at: Option<At>,
        options: &Options,
        functions: impl Into<Functions>,
        tell: &mut TellClone<'_>,
    ) -> Result<Cloned> {
        if crate::bucket::is_absent(&self.url) {
            return Err(self.no_database());
        }
        let env = Env::real();
        let bucket = self.open_bucket(&env)?;
        let target_bucket = if self.url == target.url { bucket.clone() } else { target.open_bucket(&env)? };
        self.clone_in_until((bucket, target_bucket), (target, at), (options, functions.into()), env, tell)
    }

    /// Removes a clone here that its caller ended; returns the error for the caller. What lies there is of
    /// this clone: no other writer has created the first object of its manifest.
    pub(super) fn remove_ended(&self, bucket: &Arc<dyn Bucket>, env: &Env, ended: Error) -> Error {
        debug_assert!(ended.kind() == Kind::Cancelled, "what failed stays, to be looked at");
        let Err(left) = self.remove_unfinished_clone_in(bucket, env) else { return ended };
        let place = names::place(bucket.url(), &self.prefix);
        ended.context(format!(
            "not all of the clone {place} could be removed, which --replace-unfinished does (`terrane clone`): {left}"
        ))
    }
}

//! Makes the views of a follower.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::options::Options;
use terrane_base::{Error, Functions, Kind, Result, SeqNo};
use terrane_device::Disk;
use terrane_engine::{Engine, Followed, FollowedParts, Lag, Moment, OpenRequest, Viewed, last_commit};

/// How often a view of parts elsewhere is tried while their writer moves on under it.
const ATTEMPTS_MAX: u32 = 40;
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// The database that is followed.
pub(super) enum Source {
    /// A database in a directory.
    Directory {
        /// Its device.
        disk: Arc<dyn Disk>,
        /// The directory.
        path: PathBuf,
    },
    /// A database whose parts lie elsewhere.
    Elsewhere(Arc<dyn Followed>),
}

impl Source {
    /// Where it is, for messages.
    pub(super) fn place(&self) -> String {
        match self {
            Source::Directory { path, .. } => path.display().to_string(),
            Source::Elsewhere(source) => source.address().to_owned(),
        }
    }
}

/// The inputs of every view.
pub(super) struct Viewing {
    pub(super) source: Source,
    pub(super) options: Options,
    pub(super) functions: Functions,
    pub(super) env: Env,
}

/// A view that was made.
pub(super) struct Made {
    pub(super) engine: Arc<Engine>,
    /// The last commit up to which it has all.
    pub(super) has: SeqNo,
    pub(super) attempts: u32,
    /// The error of the lock, if a process had a database in a directory open for writing.
    pub(super) writer: Option<Error>,
    pub(super) moment: Option<Moment>,
}

impl Viewing {
    /// Makes a view of the present state; `None` if the one before, of this moment, has all of it.
    pub(super) fn view(&self, before: Option<(&Arc<Engine>, Option<&Moment>)>) -> Result<Option<Made>> {
        let previous = before.map(|(engine, _)| engine);
        let (options, env, functions) = (&self.options, &self.env, &self.functions);
        match &self.source {
            Source::Directory { disk, path } => {
                let viewed = Viewed::of(disk, path, options, env, functions, previous)?;
                let (has, attempts, writer) = (viewed.engine.visible(), viewed.attempts, viewed.writer);
                Ok(Some(Made { has, engine: viewed.engine, attempts, writer, moment: None }))
            }
            Source::Elsewhere(source) => {
                let seen = before.and_then(|(_, moment)| moment);
                for attempts in 1..=ATTEMPTS_MAX {
                    let Some(parts) = source.parts(seen)? else { return Ok(None) };
                    let opened = self.of_parts(&parts, previous);
                    // Also behind an error: what changed meanwhile looks like damage.
                    if source.confirm(&parts)? {
                        let engine = opened?;
                        let has = parts.has.unwrap_or_else(|| engine.visible());
                        debug_assert!(has <= engine.visible(), "a view has no commit behind its last one");
                        let moment = Some(parts.moment);
                        return Ok(Some(Made { engine, has, attempts, writer: None, moment }));
                    }
                    env.clock.sleep(PAUSE);
                }
                let place = source.address();
                let message = format!("{place} changes faster than it can be read: catch up again later");
                Err(Error::new(Kind::Busy, message))
            }
        }
    }

    fn of_parts(&self, parts: &FollowedParts, previous: Option<&Arc<Engine>>) -> Result<Arc<Engine>> {
        let request = OpenRequest {
            disk: parts.disk.clone(),
            dir: &parts.dir,
            options: &self.options,
            env: self.env.clone(),
            functions: self.functions.clone(),
        };
        Engine::follow_elsewhere_on(request, &parts.read, previous)
    }

    /// Returns false if a view would lack the commit. Parts that lie elsewhere make no view where nothing is
    /// new, so there a view is the cheapest look.
    pub(super) fn may_have(&self, seq: SeqNo) -> Result<bool> {
        match &self.source {
            Source::Directory { disk, path } => Ok(last_commit(disk, path, &self.env)? >= seq),
            Source::Elsewhere(_) => Ok(true),
        }
    }

    /// How far the view of this moment, with this last commit, is behind the writer.
    pub(super) fn lag(&self, moment: Option<&Moment>, seen: SeqNo) -> Result<Lag> {
        match &self.source {
            Source::Directory { disk, path } => {
                Ok(Lag::of(last_commit(disk, path, &self.env)?.0.saturating_sub(seen.0)))
            }
            Source::Elsewhere(source) => source.lag(moment.unwrap_or(&Moment::default()), seen),
        }
    }
}

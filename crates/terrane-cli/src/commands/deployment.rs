//! Databases whose parts lie elsewhere, as a deployment file says: what the file is, and opening them.
//!
//! A command that writes opens the database as its writer, with the journal that the file names; the engine
//! refuses one that is not the last writer's. A command that reads takes nothing over and writes nothing: it
//! shows the extents, and the journal where that is on this machine and no writer has it open.

use std::path::Path;
use std::sync::Once;

use terrane::{Db, Follower, Options};
use terrane_remote::{Deployment, Earlier, JournalRead};

use super::functions;
use super::store::{Access, options_over};
use crate::arguments::Engine;
use crate::exit::{Code, Failure};
use crate::files;
use crate::progress::saying_when_slow;
use crate::text;

/// Where a database is.
pub(super) enum Target {
    /// In the directory of this path, or nowhere yet.
    Directory,
    /// Where this file says.
    Deployment(Box<Deployment>),
}

/// The target that the argument of a command names: a file is a deployment, all else a directory.
pub(super) fn target(path: &Path) -> Result<Target, Failure> {
    let shown = text::path(path);
    if files::is_file(path) {
        let deployment = Deployment::read(path).map_err(|error| {
            let failure = Failure::from(error);
            let message = format!(
                "{shown} is a file: a database is a directory, or a deployment file as `terrane doctor --help` \
                 has one: {}",
                failure.message
            );
            Failure { message, ..failure }
        })?;
        return Ok(Target::Deployment(Box::new(deployment)));
    }
    if files::is_neither(path) {
        let why = format!(
            "{shown} is neither a directory nor a file: a database is a directory or a deployment file"
        );
        return Err(Failure::new(Code::Usage, why));
    }
    if !files::exists(path) && path.extension().is_some_and(|extension| extension == "toml") {
        let why = format!("there is no deployment file {shown}: `terrane doctor --help` has an example");
        return Err(Failure::new(Code::NotFound, why));
    }
    Ok(Target::Directory)
}

/// Returns true if the argument of a command is a deployment file.
pub(super) fn is_deployment(path: &Path) -> bool {
    files::is_file(path)
}

/// Refuses a deployment where a command needs a database in a directory.
pub(super) fn refuse(path: &Path, command: &str, remedy: &str) -> Result<(), Failure> {
    match target(path)? {
        Target::Directory => Ok(()),
        Target::Deployment(_) => {
            let shown = text::path(path);
            let why = format!("{shown}: {command} takes no deployment yet: {remedy}");
            Err(Failure::new(Code::Usage, why))
        }
    }
}

/// Opens the database of a deployment. The options of the command line count over those of the file, and
/// `more` over both.
pub(super) fn open(
    engine: &Engine,
    path: &Path,
    deployment: &Deployment,
    access: Access,
    more: &[(&str, &str)],
) -> Result<Db, Failure> {
    let (deployment, mut options) = with_options(engine, deployment, access)?;
    more.iter().try_for_each(|(name, value)| options.set(name, value))?;
    if engine.moment().is_some() && !options.read_only {
        let why = "option read_only=false: an earlier state is only read; leave it out";
        return Err(Failure::new(Code::Usage, why));
    }
    let shown = text::path(path);
    let slow = format!(
        "{shown}: not open after 2 s yet; if its storage does not answer, it is asked for up to a minute"
    );
    if !options.read_only {
        return Ok(saying_when_slow(slow, || deployment.open_with(&options, functions::writing()))??);
    }
    if let Some(at) = engine.moment() {
        let open = || deployment.open_at_with(at, &options, functions::reading());
        let earlier = saying_when_slow(slow, open)??;
        say_moment(path, &earlier);
        return Ok(earlier.db);
    }
    let reading = saying_when_slow(slow, || deployment.open_to_read(&options, functions::reading()))??;
    say(path, reading.journal);
    Ok(reading.db)
}

/// Follows the database of a deployment.
pub(super) fn follow(engine: &Engine, path: &Path, deployment: &Deployment) -> Result<Follower, Failure> {
    let (deployment, options) = with_options(engine, deployment, Access::Read)?;
    let follower = deployment.open_follower_with(&options, functions::reading())?;
    if follower.measure_lag()?.is_least {
        say(path, JournalRead::Elsewhere);
    }
    Ok(follower)
}

/// A deployment without options, and these as the command line sets them over the file's.
pub(super) fn with_options(
    engine: &Engine,
    deployment: &Deployment,
    access: Access,
) -> Result<(Deployment, Options), Failure> {
    let mut base = Options::default();
    for (name, value) in &deployment.options {
        base.set(name, value)?;
    }
    let options = options_over(base, engine, access)?;
    Ok((Deployment { options: Vec::new(), ..deployment.clone() }, options))
}

/// Says which earlier state is shown; once, as below.
fn say_moment(path: &Path, earlier: &Earlier) {
    static SAID: Once = Once::new();
    let (shown, commit) = (text::path(path), earlier.commit);
    let what = match earlier.journal {
        JournalRead::Elsewhere => "; what was only in the journal is not shown",
        _ => "",
    };
    SAID.call_once(|| eprintln!("terrane: {shown}: as it was at commit {commit}{what}"));
}

/// Says what a reader does not show; once, because a command may open a database more than once.
pub(super) fn say(path: &Path, journal: JournalRead) {
    static SAID: Once = Once::new();
    let why = match journal {
        JournalRead::Whole => return,
        JournalRead::HasWriter => "a writer has the journal open",
        JournalRead::Elsewhere => "the journal of the last writer is not on this machine",
        JournalRead::Overtaken => "its writer was faster than the reading of the journal in the bucket",
        JournalRead::Bucket => "the journal in the bucket was read",
    };
    let what = match journal {
        JournalRead::Bucket => "commits that are not in the bucket yet",
        _ => "commits that are only in the journal",
    };
    let shown = text::path(path);
    SAID.call_once(|| eprintln!("terrane: {shown}: {why}: {what} are not shown"));
}

//! `clone`: a second database that reads the objects of the first one.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use terrane::{Kind, Options};
use terrane_base::sync::Mutex;
use terrane_remote::{ClonePin, CloneProgress, Cloned, Deployment, UnfinishedClone};

use super::deployment::{self, Target};
use super::store::Access;
use super::{consent, functions};
use crate::arguments::Engine;
use crate::arguments::clone::MakeClone;
use crate::exit::{Code, Failure};
use crate::progress::ticking;
use crate::signals::{exit_on_signal, stop_on_signals, stopped};
use crate::text::{count, path, size, utc};

pub(super) fn run(engine: &Engine, command: &MakeClone, out: &mut dyn Write) -> Result<(), Failure> {
    let original = deployment_of(&command.original)?;
    let Some(target) = &command.target else {
        if engine.moment().is_some() {
            let why = "--at and --at-commit are for making a clone: leave them out";
            return Err(Failure::new(Code::Usage, why));
        }
        return match &command.release {
            Some(number) => release(&original, command, number, out),
            None => pins(&original, command, out),
        };
    };
    let place = deployment_of(target)?;
    let (place, options) = deployment::with_options(engine, &place, Access::Write)?;
    if !command.replace_unfinished {
        if command.consent.dry_run {
            return Ok(writeln!(out, "would make the clone {}, and remove nothing", path(target))?);
        }
    } else if !replace(&place, command, target, out)? {
        return Ok(());
    }
    let cloned = make((&original, &place), engine, &options, target)?;
    deployment::say(&command.original, cloned.journal);
    report(&cloned, command, target, out)
}

/// Removes what an unfinished clone has left, with consent; returns true if the clone is to be made.
fn replace(
    place: &Deployment,
    command: &MakeClone,
    target: &Path,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let shown = path(target);
    let asked = exit_on_signal("nothing was removed, and no clone was made".to_owned())?;
    let UnfinishedClone { objects, pins } = place.find_unfinished_clone()?;
    let remove = format!("remove {objects} objects and {pins} pins of an unfinished clone at {shown}");
    // Nothing to remove needs no consent.
    let is_nothing = (objects, pins) == (0, 0) && !command.consent.dry_run;
    if !is_nothing && !consent::is_given(&command.consent, &remove, out)? {
        return Ok(false);
    }
    drop(asked);
    let left = "no clone was made; the next --replace-unfinished removes the rest of the unfinished one";
    let removing = exit_on_signal(left.to_owned())?;
    let removed = place.remove_unfinished_clone()?;
    drop(removing);
    if removed != UnfinishedClone::default() {
        let UnfinishedClone { objects, pins } = removed;
        eprintln!("terrane: {shown}: removed {objects} objects and {pins} pins of an unfinished clone");
    }
    Ok(true)
}

/// Makes the clone, shows how far it is, and ends it at a signal.
fn make(
    (original, place): (&Deployment, &Deployment),
    engine: &Engine,
    options: &Options,
    target: &Path,
) -> Result<Cloned, Failure> {
    let stop = stop_on_signals()?;
    // Acquire: pairs with the store of the thread that waits for signals.
    let is_stopped = || stop.load(Ordering::Acquire);
    let progress: Arc<Mutex<CloneProgress>> = Arc::default();
    let seen = progress.clone();
    let amount = move || {
        let CloneProgress { bytes, bytes_done, .. } = *seen.lock();
        (bytes_done, (bytes > 0).then_some(bytes))
    };
    let mut note = |now: &CloneProgress| {
        *progress.lock() = *now;
        if is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let work = || original.clone_to_until(place, engine.moment(), options, functions::writing(), &mut note);
    match ticking("clone", amount, work)? {
        Err(error) if error.kind() == Kind::Cancelled && is_stopped() => {
            let text = error.to_string();
            // What could not be removed is named with the remedy.
            Err(stopped(match text.contains("--replace-unfinished") {
                true => text,
                false => format!("no clone was made, and nothing is left at {}", path(target)),
            }))
        }
        made => Ok(made?),
    }
}

fn deployment_of(file: &Path) -> Result<Deployment, Failure> {
    match deployment::target(file)? {
        Target::Deployment(deployment) => Ok(*deployment),
        Target::Directory => {
            let shown = path(file);
            let why = format!(
                "{shown}: clone takes deployment files, as `terrane doctor --help` has one; `terrane checkpoint` makes \
                 a second database of one in a directory"
            );
            Err(Failure::new(Code::Usage, why))
        }
    }
}

fn report(cloned: &Cloned, command: &MakeClone, target: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    debug_assert!(
        cloned.objects > 0 || cloned.extents == 0,
        "an extent that is referenced lies in an object"
    );
    if command.json {
        let object = json!({
            "commit": cloned.commit.0,
            "extents": cloned.extents,
            "objects": cloned.objects,
            "referenced_bytes": cloned.bytes,
            "written_bytes": cloned.written_bytes,
        });
        return Ok(writeln!(out, "{object}")?);
    }
    Ok(writeln!(
        out,
        "{} is a clone of {} at commit {}: {} extents in {} objects with {} are referenced, {} written",
        path(target),
        path(&command.original),
        cloned.commit,
        count(cloned.extents),
        count(cloned.objects),
        size(cloned.bytes),
        size(cloned.written_bytes),
    )?)
}

fn pins(original: &Deployment, command: &MakeClone, out: &mut dyn Write) -> Result<(), Failure> {
    let _reading = exit_on_signal("not every pin was listed".to_owned())?;
    for pin in original.clone_pins()? {
        if command.json {
            writeln!(out, "{}", object(&pin))?;
        } else {
            writeln!(out, "{}", line(&pin))?;
        }
    }
    Ok(())
}

/// A pin as one line.
pub(super) fn line(pin: &ClonePin) -> String {
    format!(
        "{:032x}  {}  {} objects, {} kept for the clone {}, which began with commit {}",
        pin.number,
        created(pin),
        count(pin.objects),
        size(pin.bytes),
        pin.clone,
        pin.commit,
    )
}

/// A pin as an object of JSON.
pub(super) fn object(pin: &ClonePin) -> Value {
    json!({
        "pin": format!("{:032x}", pin.number),
        "clone": pin.clone,
        "commit": pin.commit.0,
        "created": created(pin),
        "objects": pin.objects,
        "bytes": pin.bytes,
    })
}

fn created(pin: &ClonePin) -> String {
    utc(u64::try_from(pin.created.as_millis()).unwrap_or(u64::MAX))
}

fn release(
    original: &Deployment,
    command: &MakeClone,
    number: &str,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let is_whole = number.len() == 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parsed = u128::from_str_radix(number, 16).ok().filter(|_| is_whole).ok_or_else(|| {
        let why = format!("--release {number}: expected the 32 digits of a pin, as --pins lists them");
        Failure::new(Code::Usage, why)
    })?;
    // One object is deleted, which no signal divides.
    let _releasing = exit_on_signal("the pin is released or not, as --pins shows".to_owned())?;
    if command.force || command.consent.dry_run {
        let pin = original.clone_pins()?.into_iter().find(|pin| pin.number == parsed);
        let remove = pin.map(|pin| {
            let force =
                if command.force { ", which loses data if it needs them" } else { " if that is lost" };
            let (objects, bytes) = (count(pin.objects), size(pin.bytes));
            format!("release pin {number}: {objects} objects, {bytes}, of the clone {}{force}", pin.clone)
        });
        // A pin that is not there is refused below, by name.
        if let Some(remove) = remove
            && !consent::is_given(&command.consent, &remove, out)?
        {
            return Ok(());
        }
    }
    let pin = original.release_clone(parsed, command.force)?;
    if command.json {
        return Ok(writeln!(out, "{}", json!({ "released": number, "clone": pin.clone }))?);
    }
    Ok(writeln!(
        out,
        "released pin {number}: {} objects, {}, are kept no longer for the clone {}",
        count(pin.objects),
        size(pin.bytes),
        pin.clone
    )?)
}

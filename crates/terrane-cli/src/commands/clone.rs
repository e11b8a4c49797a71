//! `clone`: a second database that reads the objects of the first one.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use terrane_remote::{ClonePin, Cloned, Deployment, UnfinishedClone};

use super::deployment::{self, Target};
use super::functions;
use super::store::Access;
use crate::arguments::Engine;
use crate::arguments::clone::MakeClone;
use crate::exit::{Code, Failure};
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
    if command.replace_unfinished {
        let removed = place.remove_unfinished_clone()?;
        if removed != UnfinishedClone::default() {
            let (shown, UnfinishedClone { objects, pins }) = (path(target), removed);
            eprintln!("terrane: {shown}: removed {objects} objects and {pins} pins of an unfinished clone");
        }
    }
    let cloned = original.clone_to_with(&place, engine.moment(), &options, functions::writing())?;
    deployment::say(&command.original, cloned.journal);
    report(&cloned, command, target, out)
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

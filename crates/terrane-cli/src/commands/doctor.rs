//! `doctor`: tries every part of a deployment, and says in words what it found.

use std::io::Write;

use serde_json::json;
use terrane_remote::Deployment;

use crate::arguments::Doctor;
use crate::exit::{Code, Failure};
use crate::signals::exit_on_signal;
use crate::text;

/// Columns of the names of parts; the longest is that of a check of the probe.
const PART_COLUMNS: usize = 35;

pub(super) fn run(command: &Doctor, out: &mut dyn Write) -> Result<(), Failure> {
    let shown = text::path(&command.deployment);
    if command.deployment.is_dir() {
        let why = format!(
            "{shown} is a directory: doctor tries the parts of a deployment, which a file describes; `terrane check` looks \
             into the database of a directory"
        );
        return Err(Failure::new(Code::Usage, why));
    }
    let deployment = Deployment::read(&command.deployment)?;
    let probes = format!("objects below {}/probe may be left, and may be deleted", deployment.prefix);
    let trying = exit_on_signal(format!("not every part was tried; {probes}"))?;
    let tried = deployment.doctor();
    drop(trying);
    let mut failures = Vec::new();
    let mut parts = Vec::new();
    for tried in &tried {
        let words = match &tried.outcome {
            Ok(found) => found.clone(),
            Err(error) => {
                failures.push(Failure::from(error.clone()));
                error.to_string()
            }
        };
        let is_well = tried.outcome.is_ok();
        if command.json {
            parts.push(json!({ "part": tried.part, "ok": is_well, "text": words }));
        } else {
            let mark = if is_well { "ok   " } else { "wrong" };
            writeln!(out, "{mark}  {:<PART_COLUMNS$}  {}", tried.part, text::shown(words))?;
        }
    }
    if command.json {
        let object = json!({ "deployment": shown, "ok": failures.is_empty(), "parts": parts });
        writeln!(out, "{object}")?;
    }
    let Some(first) = failures.first() else { return Ok(()) };
    out.flush()?;
    // Damage matters more than a part that cannot be accepted or reached.
    let code =
        failures.iter().find(|failure| failure.code == Code::Corrupt).map_or(first.code, |worst| worst.code);
    let message = format!("{shown}: {} of {} are wrong", failures.len(), tried.len());
    Err(Failure::new(code, message))
}

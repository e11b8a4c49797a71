//! Consent to a removal of more than one key: `--yes`, or an answer on the terminal; `--dry-run` only lists
//! what would be removed.

use std::io::{self, IsTerminal, Write};

use crate::arguments::{Consent, Engine};
use crate::exit::{Code, Failure};
use crate::signals::{Acting, exit_on_signal};

/// Returns true if the command is to `remove`, words such as `drop table "users" with 3 rows`.
///
/// # Errors
/// `Usage` without consent.
pub(super) fn is_given(consent: &Consent, remove: &str, out: &mut dyn Write) -> Result<bool, Failure> {
    if consent.dry_run {
        writeln!(out, "would {remove}")?;
        return Ok(false);
    }
    if consent.yes {
        return Ok(true);
    }
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        out.flush()?;
        eprint!("terrane: {remove}? [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map_err(|error| Failure::file("standard input", &error))?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(true);
        }
        return Err(Failure::new(Code::Usage, "nothing was removed"));
    }
    Err(Failure::new(Code::Usage, format!("this would {remove}: confirm with --yes, or look with --dry-run")))
}

/// As long as the result lives, a signal ends the process: nothing was removed yet, and the command would
/// wait for the answer in vain. The removal itself is one record or one edit, which no signal divides. `None`
/// in a shell, which goes on.
///
/// # Errors
/// As [`exit_on_signal`].
pub(super) fn until_removal(engine: &Engine) -> Result<Option<Acting>, Failure> {
    let is_alone = engine.opened.is_none();
    is_alone.then(|| exit_on_signal("nothing was removed".to_owned())).transpose()
}

//! Arguments of `clone`.

use std::path::PathBuf;

use clap::Args;

use super::Consent;

pub(super) const HELP: &str = "\
Examples:
  terrane clone app.toml copy.toml
  terrane clone app.toml then.toml --at -10m
  terrane clone app.toml then.toml --at-commit 1200
  terrane clone app.toml copy.toml --replace-unfinished
  terrane clone app.toml --pins
  terrane clone app.toml --release 00112233445566778899aabbccddeeff
  terrane clone app.toml --force --dry-run \\
    --release 00112233445566778899aabbccddeeff

Both files are deployments (see `terrane doctor --help`): copy.toml says where the clone is to lie, in the \
same bucket below another prefix, or in another bucket, and has a directory of its own for the journal. \
Below its prefix there is nothing yet, and nothing of it in the bucket of its journal. A clone whose \
making did not end leaves objects there, and pins: --replace-unfinished removes them before it begins, \
with consent, and refuses where there is anything else. No other process may make a clone there or open a \
database meanwhile. A pin that a crash left without a reference stays: see --pins, --release. A signal \
ends the making of a clone, and what was made is removed.

A clone is a database of its own, for reading and writing. It takes as long, and as much room, as commits \
take that only the journal has: data objects are not copied, the clone reads those of the original. A pin \
in the bucket of the original keeps them until the clone has rewritten all of them (`terrane compact \
copy.toml` does that at once); then it releases the pin itself. The bucket of the original must be in \
reach of the clone until then, under the address that app.toml has.

With --at and --at-commit the clone begins with an earlier state, as far back as garbage_age_s keeps what \
was replaced. garbage_age_s of app.toml must not be more than that of the database's writers, which delete \
by theirs: where one is about to delete, that is found out and the less of both counts.

A clone that was deleted by hand leaves its pin: --pins lists the pins, --release takes one back. It \
refuses while the clone is there, may be being made, or cannot be asked; --force, with consent, releases \
it all the same, and a clone that needs the objects loses data.
";

/// `clone`.
#[derive(Clone, Debug, Args)]
pub struct MakeClone {
    /// Deployment file of the database
    pub original: PathBuf,
    /// Deployment file of the clone; nothing lies there yet
    #[arg(required_unless_present_any = ["pins", "release"])]
    pub target: Option<PathBuf>,
    /// List the pins by which clones keep objects of the database
    #[arg(long, conflicts_with_all = ["target", "release"])]
    pub pins: bool,
    /// Take back the pin of a clone that was deleted, by its number
    #[arg(long, value_name = "NUMBER", conflicts_with = "target")]
    pub release: Option<String>,
    /// Remove what an unfinished clone has left in the place of this one
    #[arg(long, requires = "target")]
    pub replace_unfinished: bool,
    /// Release the pin whether the clone needs it or not
    #[arg(long, requires = "release", conflicts_with = "pins")]
    pub force: bool,
    /// One JSON object for each line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub consent: Consent,
}

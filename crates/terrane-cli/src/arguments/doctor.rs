//! Arguments of `doctor`.

use std::path::PathBuf;

use clap::Args;

pub(super) const HELP: &str = "\
Examples:
  terrane doctor app.toml
  terrane doctor app.toml --json

Every command that takes the directory of a database takes a deployment file in its place. It says where \
the parts of the database lie:

  [journal]
  # on this machine; beside this file if it is not a whole path
  directory = \"/var/lib/app/journal\"

  [storage]
  # a directory, or s3://NAME in a command built with the feature s3
  url = \"file:///srv/bucket\"
  # the database in the bucket; default: terrane
  prefix = \"app\"

  [compaction]
  # `terrane serve compactor app.toml` merges elsewhere; default: false
  workers = true

  # those of the engine, as `terrane options` lists them
  [options]
  memory_bytes = \"256MiB\"

Save it as app.toml. `terrane put app.toml ada 'Ada Lovelace'` makes the database. A command that writes \
is its one writer meanwhile. A command that reads takes nothing over and works beside a writer anywhere; \
where the journal is elsewhere, or a writer has it open, commits that are only there are not shown, and \
standard error says so. docs/design/0040-elastic.md has the other keys.

The doctor tries the directory of the journal, each promise of the object store (by objects that it \
removes again), the manifest with the journal, and the data objects. It takes nothing over and makes no \
database. The exit code is 0 if all is well, otherwise that of the first part that is wrong, or 3 if \
stored bytes are damaged.
";

/// `doctor`.
#[derive(Clone, Debug, Args)]
pub struct Doctor {
    /// Deployment file
    pub deployment: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

//! Examples at the end of the help of commands that need no other words.

pub(super) const GET: &str = "\
Examples:
  terrane get people.terrane ada
  terrane get people.terrane 0x00ff --format hex
  terrane get visits.terrane page --table visits --number";
pub(super) const PUT: &str = "\
Examples:
  terrane put people.terrane ada 'Ada Lovelace'
  terrane put people.terrane photo:ada - < ada.jpg
  terrane put sessions.terrane s1 token --ttl 12h --sync";
pub(super) const MERGE: &str = "\
Examples:
  terrane tables visits.terrane --create visits --set merge_operator=counter
  terrane merge visits.terrane page 1 --number --table visits
  terrane get visits.terrane page --table visits --number";
pub(super) const DELETE: &str = "\
Example:
  terrane delete people.terrane ada";
pub(super) const DELETE_RANGE: &str = "\
Examples:
  terrane delete-range log.terrane 2024-01 2024-02 --dry-run
  terrane delete-range log.terrane 2024-01 2024-02 --yes";
pub(super) const SCAN: &str = "\
Examples:
  terrane scan people.terrane --prefix a --limit 10
  terrane scan people.terrane --from a --to b --reverse --keys
  terrane scan people.terrane --format json | jq .value";
pub(super) const COUNT: &str = "\
Example:
  terrane count people.terrane --prefix a";
pub(super) const ESTIMATE: &str = "\
Example:
  terrane estimate log.terrane --from 2024-01 --to 2024-02";
pub(super) const TABLES: &str = "\
Examples:
  terrane tables people.terrane --long
  terrane tables visits.terrane --create visits --set merge_operator=counter
  terrane tables people.terrane --drop old --yes";
pub(super) const SHAPE: &str = "\
Examples:
  terrane shape people.terrane
  terrane shape people.terrane --follow";
pub(super) const STATS: &str = "\
Examples:
  terrane stats people.terrane --json
  terrane stats people.terrane --prometheus

Of a deployment the pins by which clones keep objects of it come last: lines, the member clone_pins, or \
metrics that begin with terrane_clone_pin. They are left out with --follow, --table and --at.";
pub(super) const CHECK: &str = "\
Example:
  terrane check people.terrane";
pub(super) const REPAIR: &str = "\
Example:
  terrane repair damaged.terrane repaired.terrane";
pub(super) const COMPACT: &str = "\
Examples:
  terrane compact people.terrane
  terrane compact log.terrane --table log --to 2024-02";
pub(super) const DROP_EXTENTS: &str = "\
Examples:
  terrane drop-extents log.terrane --to 2024-02 --dry-run
  terrane drop-extents log.terrane --to 2024-02 --yes";
pub(super) const INSPECT: &str = "\
Example:
  terrane inspect people.extents";
pub(super) const DUMP: &str = "\
Example:
  terrane dump people.terrane/MANIFEST-000001 --limit 20";
pub(super) const OPTIONS: &str = "\
Examples:
  terrane options
  terrane put people.terrane k v -o memory_bytes=64MiB";
pub(super) const COMPLETIONS: &str = "\
Example:
  terrane completions bash > ~/.local/share/bash-completion/completions/terrane";
pub(super) const MAN: &str = "\
Example:
  terrane man ~/.local/share/man/man1";
pub(super) const TOUR: &str = "\
Example:
  terrane tour";

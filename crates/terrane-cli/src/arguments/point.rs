//! Arguments of `get`, `put`, `merge`, `delete` and `delete-range`.

use clap::Args;

use super::{Consent, TableArgs};
use crate::text::Format;

/// `get`.
#[derive(Clone, Debug, Args)]
pub struct Get {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    /// The key
    pub key: String,
    /// How the value is printed: tsv, hex and raw print it alone, json with its key. If left out raw, and on
    /// a terminal a counter as a number
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Print the value of a counter as a number, also where no terminal shows it
    #[arg(long, conflicts_with = "format")]
    pub number: bool,
}

/// `put`.
#[derive(Clone, Debug, Args)]
pub struct Put {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    /// The key
    pub key: String,
    /// The value; - reads it from standard input as it is
    #[arg(allow_negative_numbers = true)]
    pub value: String,
    /// The value is a number, for a table whose operator is counter
    #[arg(long)]
    pub number: bool,
    /// Take the value as it is typed, without escapes, 0x or -
    #[arg(long, conflicts_with = "number")]
    pub text: bool,
    /// How long it lives, such as 90s, 15m, 12h or 30d; the table's time to live if left out
    #[arg(long, value_name = "TIME")]
    pub ttl: Option<String>,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
}

/// `merge`.
#[derive(Clone, Debug, Args)]
pub struct Merge {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    /// The key
    pub key: String,
    /// The operand
    #[arg(allow_hyphen_values = true)]
    pub operand: String,
    /// The operand is a number, for a table whose operator is counter
    #[arg(long)]
    pub number: bool,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
}

/// `delete`.
#[derive(Clone, Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    /// The key
    pub key: String,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
}

/// `delete-range`.
#[derive(Clone, Debug, Args)]
pub struct DeleteRange {
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub place: TableArgs,
    /// First key of the range
    #[arg(value_name = "FROM", required_unless_present = "from_option", conflicts_with = "from_option")]
    pub from: Option<String>,
    /// First key after the range
    #[arg(value_name = "TO", required_unless_present = "to_option", conflicts_with = "to_option")]
    pub to: Option<String>,
    /// First key of the range, as the other commands take it
    #[arg(long = "from", value_name = "KEY", requires = "to_option")]
    pub from_option: Option<String>,
    /// First key after the range
    #[arg(long = "to", value_name = "KEY", requires = "from_option")]
    pub to_option: Option<String>,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub consent: Consent,
}

impl DeleteRange {
    /// The first key of the range and the first key after it, as they were typed.
    #[must_use]
    pub fn bounds(&self) -> (&str, &str) {
        let from = self.from.as_deref().or(self.from_option.as_deref());
        let to = self.to.as_deref().or(self.to_option.as_deref());
        // The parser requires one of each.
        (from.unwrap_or_default(), to.unwrap_or_default())
    }
}

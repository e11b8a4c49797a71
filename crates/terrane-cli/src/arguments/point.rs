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
    /// How the value is printed: tsv, hex and raw print it alone, json with its key
    #[arg(long, value_enum, default_value = "raw")]
    pub format: Format,
    /// Print the value of a counter as a number
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
    pub from: String,
    /// First key after the range
    pub to: String,
    /// Return when it survives the loss of power
    #[arg(long)]
    pub sync: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "flattened")]
    pub consent: Consent,
}

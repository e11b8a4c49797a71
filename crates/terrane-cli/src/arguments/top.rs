//! Arguments of `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

pub(super) const HELP: &str = "\
Examples:
  terrane top data.terrane
  terrane top data.terrane --once
  terrane top data.terrane --json --count 60

Looks into a database that another process has open for writing, by the page of metrics that it shares: \
the file METRICS in its directory, renewed each second (option diagnostics.metrics_page_ms of the writer; \
0 shares none). It takes no lock and disturbs neither readers nor writers. Rates and latencies are those \
between two pages. Numbers with ~ come from samples, one in 64.

  q, Ctrl-C     end

Where standard output is not a terminal, each page is printed below the one before. `terrane stats` and \
`terrane shape` look into a database that is closed.
";

/// `top`.
#[derive(Clone, Debug, Args)]
pub struct Top {
    /// Directory of the database, or deployment file whose journal is on this machine
    pub database: PathBuf,
    /// Seconds between two pages that are shown, such as 0.5
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
    /// End after this many pages
    #[arg(long, value_name = "PAGES")]
    pub count: Option<u64>,
    /// Show one page, with the rates of one interval
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// One JSON object in a line for each page
    #[arg(long)]
    pub json: bool,
}

/// A time of a tenth of a second to a day.
fn seconds(typed: &str) -> Result<Duration, String> {
    let expected = || "expected seconds from 0.1 to 86400, such as 2 or 0.5".to_owned();
    let number: f64 = typed.parse().map_err(|_| expected())?;
    if (0.1..=86_400.0).contains(&number) { Ok(Duration::from_secs_f64(number)) } else { Err(expected()) }
}

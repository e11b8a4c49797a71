//! Arguments of `cost`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

pub(super) const HELP: &str = "\
Examples:
  terrane cost app.toml
  terrane cost app.toml --seconds 60
  terrane cost --show-prices > prices.toml
  terrane cost app.toml --prices prices.toml --json

Prints what a deployment costs: requests and bytes by part, stored bytes, and processor time of the process \
that writes it, each with its price for an hour. It reads the page of metrics that the writer shares, as \
`terrane top` does, so the writer must run on this machine. Without --seconds the numbers are those since the \
writer opened the database.

Requests are counted as an object store bills them; a bucket that is a directory is billed as if it were one. \
Parts that a service of your own keeps (grpc://) are counted and not billed. The built-in prices are list \
prices of S3 Standard in one region, without traffic to other zones or regions, and of a processor of an \
ordinary machine: compare them with your bill, and write your own file.
";

/// `cost`.
#[derive(Clone, Debug, Args)]
pub struct Cost {
    /// Deployment file of the database
    #[arg(required_unless_present = "show_prices")]
    pub deployment: Option<PathBuf>,
    /// Measure the load of so many seconds from now, such as 60; a signal ends it earlier
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<Duration>,
    /// File with prices in the place of the built-in ones
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Print the prices as a file for --prices, and measure nothing
    #[arg(long, conflicts_with_all = ["deployment", "seconds", "json"])]
    pub show_prices: bool,
}

/// A time of a second to a day.
fn seconds(typed: &str) -> Result<Duration, String> {
    let expected = || "expected seconds from 1 to 86400, such as 60".to_owned();
    let number: f64 = typed.parse().map_err(|_| expected())?;
    if (1.0..=86_400.0).contains(&number) { Ok(Duration::from_secs_f64(number)) } else { Err(expected()) }
}

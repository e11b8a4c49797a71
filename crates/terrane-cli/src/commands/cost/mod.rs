//! `cost`: what a deployment costs, by the page of metrics that its writer shares.
//!
//! * `prices`: a file of prices. `bill`: a load, and its price. `shown`: both as lines and as one object.

mod bill;
mod prices;
mod shown;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane::{Kind, MetricsPage, PageWriterState, SharedMetrics, metrics_page};
use terrane_base::env::Env;

use self::bill::{Bill, Load};
use self::prices::Prices;
use super::deployment::{self, Target};
use crate::arguments::cost::Cost;
use crate::exit::{Code, Failure};
use crate::files;
use crate::signals::stop_on_signals;
use crate::text;

/// Time between two looks at the page.
const TURN: Duration = Duration::from_millis(50);

pub(super) fn run(command: &Cost, out: &mut dyn Write) -> Result<(), Failure> {
    let prices = Prices::read(command.prices.as_deref())?;
    let Some(file) = command.deployment.as_deref().filter(|_| !command.show_prices) else {
        let shown = match &command.prices {
            Some(path) => files::read_text(path).map_err(|error| Failure::file(&text::path(path), &error))?,
            None => prices::BUILT_IN.to_owned(),
        };
        return Ok(out.write_all(shown.as_bytes())?);
    };
    let Target::Deployment(deployment) = deployment::target(file)? else {
        let why = format!(
            "{}: cost takes a deployment file; a database in a directory makes no requests",
            text::path(file)
        );
        return Err(Failure::new(Code::Usage, why));
    };
    let now = metrics_page(&deployment.journal)?;
    let (before, now) = match command.seconds {
        None => (None, now),
        Some(time) => {
            let stop = stop_on_signals()?;
            let end = measured(&deployment.journal, &now, time, &stop)?;
            (Some(now.page), end)
        }
    };
    let load = Load::between(before.as_ref(), &now.page).filter(|load| load.seconds > 0.0);
    let load = load.ok_or_else(|| nothing_measured(file, &now.page))?;
    let bill = Bill::of(&load, &prices, bill::billed(&deployment));
    if command.json {
        return Ok(writeln!(out, "{}", shown::object(&load, &bill, &prices))?);
    }
    Ok(shown::write(file, (&now, before.is_some()), &load, &bill, &prices, out)?)
}

/// Waits for the first page that is `time` newer than `before`, or for a signal; returns the newest page.
fn measured(
    journal: &Path,
    before: &SharedMetrics,
    time: Duration,
    stop: &AtomicBool,
) -> Result<SharedMetrics, Failure> {
    let clock = Env::real().clock;
    let mut newest = before.clone();
    loop {
        let is_over =
            newest.page.open_micros.saturating_sub(before.page.open_micros) >= time.as_micros() as u64;
        // Acquire: pairs with the store of the thread that waits for signals.
        if is_over || stop.load(Ordering::Acquire) || newest.writer == PageWriterState::Gone {
            return Ok(newest);
        }
        clock.sleep(TURN);
        match metrics_page(journal) {
            Ok(page) if is_of_one_opening(&page.page, &before.page) => newest = page,
            // It was closed, and perhaps opened again: what came before is measured.
            Ok(_) => return Ok(newest),
            Err(error) if matches!(error.kind(), Kind::Busy | Kind::NotFound) => return Ok(newest),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_of_one_opening(page: &MetricsPage, before: &MetricsPage) -> bool {
    let identity = |page: &MetricsPage| (page.process, page.database);
    identity(page) == identity(before) && page.open_micros >= before.open_micros
}

#[cold]
fn nothing_measured(file: &Path, page: &MetricsPage) -> Failure {
    let shown = text::path(file);
    let why = match page.metric("bucket_data_creates") {
        None => format!(
            "{shown}: process {} does not count its requests: its version of Terrane is older than this command's",
            page.process
        ),
        Some(_) => format!(
            "{shown}: the writer shared no second page: it was closed, or the measurement was stopped; try again \
             with a writer that runs"
        ),
    };
    Failure::new(Code::NotFound, why)
}

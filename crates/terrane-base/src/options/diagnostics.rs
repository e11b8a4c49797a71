//! Settings of what an open database says about itself: which operations it logs as slow, and how often it
//! shares its metrics with other processes. They change no result and no file of the database.

use super::OptionInfo;

const HOUR_MICROS: u64 = 3_600_000_000;

options! {
    /// Limits from which operations are logged as slow:
    /// [`Options::diagnostics`](super::Options::diagnostics).
    ///
    /// ```
    /// use terrane_base::options::Options;
    /// let mut options = Options::default();
    /// options.set("diagnostics.slow_read_micros", "500")?;
    /// assert_eq!(options.diagnostics.slow_read_micros, 500);
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    struct Diagnostics "diagnostics.";
    slow_read_micros: u64 = 0, "0 (off) to 3600000000", |v| *v <= HOUR_MICROS,
        "A point read or multi_get that takes this many microseconds is logged as slow, with its time by part.";
    slow_write_micros: u64 = 0, "0 (off) to 3600000000", |v| *v <= HOUR_MICROS,
        "A write that takes this many microseconds is logged as slow, with its time by part.";
    slow_scan_micros: u64 = 0, "0 (off) to 3600000000", |v| *v <= HOUR_MICROS,
        "A seek or step of a scan that takes this many microseconds is logged as slow, with its time by part.";
    slow_job_micros: u64 = 0, "0 (off) to 3600000000", |v| *v <= HOUR_MICROS,
        "A background job that takes this many microseconds is logged as slow.";
    metrics_page_ms: u64 = 1000, "0 (off) or 100 to 60000", |v| *v == 0 || (100..=60_000).contains(v),
        "Milliseconds between two pages of metrics that an open database shares with other processes, for `terrane top`.";
}

impl Diagnostics {
    /// The front part of the names of these options in `name=value`.
    pub(super) const PREFIX: &'static str = "diagnostics.";

    /// Descriptions of all diagnostic options.
    ///
    /// ```
    /// # use terrane_base::options::Diagnostics;
    /// for option in Diagnostics::describe() {
    ///     println!("{}={}: {}", option.name, option.default, option.about);
    /// }
    /// # assert!(Diagnostics::describe().iter().all(|option| option.name.starts_with("diagnostics.")));
    /// ```
    #[must_use]
    pub fn describe() -> Vec<OptionInfo> {
        Diagnostics::describe_listed()
    }
}

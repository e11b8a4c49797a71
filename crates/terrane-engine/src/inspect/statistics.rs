//! All metrics of a database and of its tables at a moment.

use crate::observe::stats::{
    HISTOGRAMS, MetricValue, NUMBERS, Sample, Statistics, Stats, TableStatistics, TableStats, numbers,
};
use crate::shared::Shared;

impl Shared {
    /// All metrics: these of the database, its distributions, and those of its tables.
    pub(crate) fn statistics_with(&self, stats: &Stats) -> Statistics {
        let values: Vec<u64> = stats.rows().into_iter().map(|(_, _, value, _)| value).collect();
        debug_assert!(values.len() == NUMBERS.len(), "every metric has its number");
        let distributions = HISTOGRAMS.iter().zip(self.histograms.snapshots());
        let distributions = distributions
            .map(|(metric, value)| Sample { metric, value: MetricValue::Histogram(Box::new(value)) });
        let tables = self.catalog.all();
        Statistics {
            samples: numbers(NUMBERS, values).chain(distributions).collect(),
            tables: tables
                .iter()
                .map(|table| TableStatistics {
                    name: table.name.clone(),
                    samples: numbers(TableStats::METRICS, table.stats().values()).collect(),
                })
                .collect(),
        }
    }
}

//! All metrics of a database and of its tables at a moment.

use crate::engine::Engine;
use crate::observe::stats::{
    HISTOGRAMS, MetricValue, NUMBERS, Sample, Statistics, TableStatistics, TableStats, numbers,
};

impl Engine {
    /// All metrics of the database and of its tables.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let values = self.stats().rows().into_iter().map(|(_, _, value, _)| value).collect();
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

//! The prices of a file, or those that are built in.

use std::path::Path;

use serde::Deserialize;

use crate::exit::{Code, Failure};
use crate::files;
use crate::text;

/// The built-in prices, as a file has them.
pub(super) const BUILT_IN: &str = r#"# Prices for `terrane cost --prices FILE`; all in the same currency.
currency = "USD"

[requests]              # of 1000 requests
create = 0.005          # PUT
read = 0.0004           # GET
list = 0.005            # LIST
delete = 0.0            # DELETE

[traffic]               # of 10^9 bytes between the machine and the bucket
sent = 0.0
received = 0.0

[storage]
gb_month = 0.023        # of 10^9 bytes for a month of 730 hours

[machine]
processor_hour = 0.04   # of a processor for an hour
"#;

/// Prices in one currency.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prices {
    pub(super) currency: String,
    pub(super) requests: RequestPrices,
    pub(super) traffic: TrafficPrices,
    pub(super) storage: StoragePrices,
    pub(super) machine: MachinePrices,
}

/// Prices of a thousand requests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestPrices {
    pub(super) create: f64,
    pub(super) read: f64,
    pub(super) list: f64,
    pub(super) delete: f64,
}

/// Prices of 10^9 bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrafficPrices {
    pub(super) sent: f64,
    pub(super) received: f64,
}

/// Price of 10^9 stored bytes for a month.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoragePrices {
    pub(super) gb_month: f64,
}

/// Price of a processor for an hour.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachinePrices {
    pub(super) processor_hour: f64,
}

impl Prices {
    /// Those of the file, or the built-in ones.
    ///
    /// # Errors
    /// Names the file, and the wrong or missing price.
    pub(super) fn read(file: Option<&Path>) -> Result<Prices, Failure> {
        let Some(path) = file else {
            return Ok(Prices::parse(BUILT_IN).expect("the built-in prices are a file of prices"));
        };
        let shown = text::path(path);
        let read = files::read_text(path).map_err(|error| Failure::file(&shown, &error))?;
        Prices::parse(&read).map_err(|why| {
            let why = why.trim_end();
            let message =
                format!("{shown}: {why}; `terrane cost --show-prices` prints a whole file of prices");
            Failure::new(Code::Usage, message)
        })
    }

    /// The prices of a text.
    fn parse(text: &str) -> Result<Prices, String> {
        let prices: Prices = toml::from_str(text).map_err(|error| error.to_string())?;
        let Prices { requests, traffic, storage, machine, currency } = &prices;
        let all = [
            ("requests.create", requests.create),
            ("requests.read", requests.read),
            ("requests.list", requests.list),
            ("requests.delete", requests.delete),
            ("traffic.sent", traffic.sent),
            ("traffic.received", traffic.received),
            ("storage.gb_month", storage.gb_month),
            ("machine.processor_hour", machine.processor_hour),
        ];
        if let Some((name, price)) = all.iter().find(|(_, price)| !(price.is_finite() && *price >= 0.0)) {
            return Err(format!("price {name} = {price}: a price is 0 or more"));
        }
        if currency.is_empty() || currency.chars().any(char::is_control) {
            return Err(format!("currency {currency:?}: write its name, such as \"USD\""));
        }
        Ok(prices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_prices_are_a_file_of_prices() {
        let prices = Prices::read(None).expect("they are built in");
        assert_eq!(prices.currency, "USD");
        assert_eq!(prices.requests.create, 0.005);
        assert_eq!(Prices::parse(BUILT_IN), Ok(prices));
    }

    #[test]
    fn wrong_prices_are_refused_by_name() {
        let with = |from: &str, to: &str| Prices::parse(&BUILT_IN.replacen(from, to, 1)).expect_err(to);
        for (from, to, named) in [
            ("create = 0.005", "create = -1.0", "requests.create = -1"),
            ("gb_month = 0.023", "gb_month = nan", "storage.gb_month = NaN"),
            ("list = 0.005", "lst = 0.005", "lst"),
            ("sent = 0.0", "", "sent"),
            ("\"USD\"", "\"\"", "currency"),
        ] {
            let why = with(from, to);
            assert!(why.contains(named), "{named:?} is not in {why}");
        }
    }
}

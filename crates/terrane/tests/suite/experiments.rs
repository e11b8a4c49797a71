//! Experiments and diagnostic options: set by name, separate from the ordinary options, kept where they
//! differ from the default.

use terrane::{Diagnostics, Experiments, Kind, OptionInfo, Options};

/// The lists that have a prefix.
fn prefixed() -> Vec<OptionInfo> {
    [Diagnostics::describe(), Experiments::describe()].concat()
}

fn plain(name: &str) -> &str {
    let (prefix, plain) = name.split_once('.').expect("a prefix");
    assert!(["diagnostics", "experiments"].contains(&prefix), "{name}");
    plain
}

/// A value that this row accepts and that is not its default.
fn other_value(default: &str) -> String {
    match default {
        "true" => "false".to_owned(),
        "false" => "true".to_owned(),
        "auto" => "scalar".to_owned(),
        "arena" => "heap".to_owned(),
        "10" | "0" => "11".to_owned(),
        // Within the range of every number; `set` would refuse it otherwise.
        number => (number.parse::<u64>().expect("a number") + 200).to_string(),
    }
}

#[test]
fn no_name_is_in_two_lists() {
    let all = [Options::describe(), prefixed()].concat();
    for info in prefixed() {
        let plain = plain(info.name);
        let same = all.iter().filter(|option| option.name.rsplit('.').next() == Some(plain));
        assert_eq!(same.count(), 1, "{plain} is in two lists");
    }
}

#[test]
fn an_option_with_a_prefix_is_set_by_either_name_and_shown_by_the_full_one() {
    for info in prefixed() {
        let (full, value) = (info.name, other_value(&info.default));
        let mut by_full = Options::default();
        by_full.set(full, &value).unwrap();
        let mut by_plain = Options::default();
        by_plain.set(plain(full), &value).unwrap();
        assert_eq!(by_full, by_plain);
        assert_ne!(by_full, Options::default(), "{full}={value} changes nothing");
        let shown = by_full.show();
        assert_eq!(shown.last(), Some(&(full, value)));
        assert_eq!(shown.len(), Options::describe().len() + 1, "the other defaults are not shown");
        let mut again = Options::default();
        shown.iter().for_each(|(name, value)| again.set(name, value).unwrap());
        assert_eq!(again, by_full);
    }
    assert_eq!(Options::default().show().len(), Options::describe().len());
}

#[test]
fn a_wrong_name_or_value_is_refused_by_its_full_name() {
    let mut options = Options::default();
    let error = options.set("experiments.memory_bytes", "1").unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains("there is no option experiments.memory_bytes"), "{error}");
    for name in ["slow_job_micros", "diagnostics.slow_job_micros"] {
        let error = options.set(name, "3600000001").unwrap_err();
        assert!(error.to_string().contains("option diagnostics.slow_job_micros=3600000001"), "{error}");
        options = Options::default();
    }
    for name in ["hot_cold", "experiments.hot_cold"] {
        let error = options.set(name, "perhaps").unwrap_err();
        assert!(error.to_string().contains("option experiments.hot_cold=perhaps"), "{error}");
    }
    let error = options.set("hot_colder", "true").unwrap_err();
    assert!(error.to_string().contains("there is no option hot_colder"), "{error}");
    assert_eq!(options, Options::default());
}

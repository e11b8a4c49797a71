//! Arguments of the command that would have no effect.

use terrane_sim::threads::arguments::{Arguments, parse};

fn of(line: &str) -> Result<Option<Arguments>, String> {
    parse(line.split_whitespace().map(str::to_owned))
}

#[test]
fn arguments_without_effect_are_refused() {
    for (line, why) in [
        ("--replay 1:2 --histories 5", "--replay names what it does: it cannot be given with --histories"),
        ("--schedules 5 --replay 1:2", "with --schedules"),
        ("--replay 1:2 --start 5", "with --start"),
        ("--time 5 --replay 1:2", "with --time"),
        ("--show 1 --start 5", "--show names what it does: it cannot be given with --start"),
        ("--time 5 --show 1", "with --time"),
        ("--replay 1:2 --show 1", "--show names what it does: it cannot be given with --replay"),
        ("--show 1 --hold 5", "with --hold"),
        ("--show 1 --processor 0", "with --processor"),
    ] {
        let refused = of(line).err().unwrap_or_else(|| panic!("{line} is accepted"));
        assert!(refused.contains(why), "{line}: {refused}");
    }
    for fine in
        ["--replay 1:2 --hold 5 --processor 0", "--show 7", "--histories 5 --start 2 --time 9 --hold 1"]
    {
        assert!(matches!(of(fine), Ok(Some(_))), "{fine}");
    }
    assert!(matches!(of("--show 1 --help"), Ok(None)));
}

//! The arguments of `cargo xtask schedules`.

use std::time::Duration;

use super::campaign::Campaign;

/// The wishes of a command line.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// The campaign, where nothing else is asked for.
    pub campaign: Campaign,
    /// A history and one of its schedules, to run again.
    pub replay: Option<(u64, u64)>,
    /// A history to show.
    pub show: Option<u64>,
    /// How long the process waits after a failure.
    pub hold: Duration,
    /// The processor that it uses.
    pub processor: usize,
}

/// The arguments of a command line; none where it asks for help.
///
/// # Errors
/// Names the option that is wrong, and why.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
    let campaign = Campaign { start: 0, histories: 100, schedules: 100, time: None };
    let processor = std::process::id() as usize;
    let mut parsed = Arguments { campaign, replay: None, show: None, hold: Duration::ZERO, processor };
    let mut given = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--help" {
            return Ok(None);
        }
        given.push(word.clone());
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number =
            |text: &str| text.parse::<u64>().map_err(|_| format!("{word}: {text:?} is not a number"));
        match word.as_str() {
            "--histories" => parsed.campaign.histories = number(&value)?,
            "--schedules" => parsed.campaign.schedules = number(&value)?,
            "--start" => parsed.campaign.start = number(&value)?,
            "--time" => parsed.campaign.time = Some(Duration::from_secs(number(&value)?)),
            "--hold" => parsed.hold = Duration::from_secs(number(&value)?),
            "--processor" => parsed.processor = number(&value)? as usize,
            "--show" => parsed.show = Some(number(&value)?),
            "--replay" => {
                let (history, schedule) =
                    value.split_once(':').ok_or("--replay wants HISTORY:SCHEDULE, such as 17:3")?;
                parsed.replay = Some((number(history)?, number(schedule)?));
            }
            _ => return Err(format!("no such option: {word}")),
        }
    }
    if parsed.campaign.histories == 0 || parsed.campaign.schedules == 0 {
        return Err("0 histories or schedules would show nothing".to_owned());
    }
    check_together(&given)?;
    Ok(Some(parsed))
}

/// Refuses an option that the command would not follow beside another one.
fn check_together(given: &[String]) -> Result<(), String> {
    const OF_A_CAMPAIGN: &[&str] = &["--histories", "--schedules", "--start", "--time"];
    let is_given = |option: &str| given.iter().any(|word| word == option);
    for (alone, others) in [
        ("--show", &["--replay", "--hold", "--processor"][..]),
        ("--show", OF_A_CAMPAIGN),
        ("--replay", OF_A_CAMPAIGN),
    ] {
        if let Some(other) = others.iter().find(|other| is_given(alone) && is_given(other)) {
            return Err(format!("{alone} names what it does: it cannot be given with {other}"));
        }
    }
    Ok(())
}

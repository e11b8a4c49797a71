//! A comparison as text.

use std::fmt;

use super::{Comparison, PAIRS_MIN, Row, StepKey, Verdict};
use crate::report::metric::{self, NONE};
use crate::report::text::{Colour, Columns, Text, clean, cut, wrap};

/// Widest line.
const WIDTH: usize = 140;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "WORSE",
            Verdict::Same => "same",
            Verdict::Unsure => "unsure",
        })
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {} / {}", clean(&self.scenario), clean(&self.step), clean(&self.engine))
    }
}

/// Plain text; with `{:#}` the verdicts are coloured.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for warning in &self.warnings {
            paragraph(f, 0, &format!("warning: {warning}"))?;
        }
        table(f, &self.rows, f.alternate())?;
        self.means(f)?;
        for (place, why) in &self.missing {
            paragraph(f, 0, &format!("MISSING in the second run: {place}: {why}"))?;
        }
        for place in &self.only_b {
            paragraph(f, 0, &format!("only in the second run: {place}"))?;
        }
        self.conclusion(f)
    }
}

impl Comparison {
    fn means(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut engines: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !engines.contains(&row.place.engine.as_str()) {
                engines.push(&row.place.engine);
            }
        }
        for engine in engines {
            if let Some(mean) = self.mean(engine) {
                paragraph(f, 0, &format!("geometric mean of {engine}: {}", metric::times(mean)))?;
            }
        }
        Ok(())
    }

    fn conclusion(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |verdict: Verdict| self.rows.iter().filter(|row| row.verdict == verdict).count();
        let limits = format!(
            "{} better, {} same, {} unsure, {} worse, {} missing; a rate is worse if its interval lies below {:.3}, better above {:.3}",
            count(Verdict::Better),
            count(Verdict::Same),
            count(Verdict::Unsure),
            count(Verdict::Worse),
            self.missing.len(),
            1.0 - self.bound,
            1.0 / (1.0 - self.bound)
        );
        paragraph(f, 0, &limits)?;
        let blind = self.rows.iter().filter(|row| row.interval.coverage.is_none()).count();
        if blind > 0 {
            let text = format!(
                "note: {blind} of {} rows have fewer than {PAIRS_MIN} pairs: noise cannot be judged there and the verdict is unsure; the interval (marked ?) is the range of the pairs; use --repetitions {PAIRS_MIN} or more",
                self.rows.len()
            );
            paragraph(f, 0, &text)?;
        }
        f.write_str(match (self.is_empty(), self.regressed()) {
            (true, _) => "NOTHING TO COMPARE: no cell is in both runs\n",
            (false, true) => "REGRESSED\n",
            (false, false) => "no regression\n",
        })
    }
}

fn paragraph(f: &mut fmt::Formatter<'_>, indent: usize, text: &str) -> fmt::Result {
    for line in wrap(&clean(text), WIDTH - indent) {
        writeln!(f, "{:indent$}{line}", "")?;
    }
    Ok(())
}

fn table(f: &mut fmt::Formatter<'_>, rows: &[Row], colour: bool) -> fmt::Result {
    let heads = [
        "scenario", "step", "engine", "first", "second", "ratio", "interval", "cover", "pairs", "p99", "cpu",
        "verdict",
    ];
    let mut columns = Columns::new(3, heads.map(str::to_owned));
    for row in rows {
        columns.row(cells(row));
    }
    for line in columns.lines(colour) {
        writeln!(f, "{line}")?;
    }
    Ok(())
}

fn cells(row: &Row) -> Vec<Text> {
    let figure = |value: f64| if row.timed { metric::seconds(value) } else { metric::rate(value) };
    let shown = |ratio: Option<f64>| ratio.map_or(NONE.to_owned(), metric::times);
    let colour = match row.verdict {
        Verdict::Better => Colour::Good,
        Verdict::Worse => Colour::Bad,
        Verdict::Same | Verdict::Unsure => Colour::Plain,
    };
    let cover = row.interval.coverage.map_or("?".to_owned(), |share| format!("{:.0}%", share * 100.0));
    vec![
        cut(&clean(&row.place.scenario), 18).into(),
        cut(&clean(&row.place.step), 22).into(),
        cut(&clean(&row.place.engine), 16).into(),
        figure(row.a).into(),
        figure(row.b).into(),
        Text { text: metric::times(row.ratio.median), colour },
        format!("{}..{}", metric::short(row.interval.low), metric::short(row.interval.high)).into(),
        cover.into(),
        row.ratio.count.to_string().into(),
        shown(row.p99).into(),
        shown(row.cpu).into(),
        Text { text: row.verdict.to_string(), colour },
    ]
}

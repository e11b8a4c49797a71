//! A run as text: printed when a seed fails, and read by `--replay`.
//!
//! ```text
//! seed 7
//! option memory_bytes=16777216
//! put default 17 100:3 sync
//! crash power:9 after 3
//! batch default:4:10:5 other:4:-
//! scan default [4 )9 forward 10
//! ```
//!
//! One operation per line, in the order of `Op`; `#` begins a comment.

mod show;

use std::fmt;
use std::ops::Bound;
use std::str::FromStr;

use terrane_device::Call;

use crate::bulk;
use crate::fault::{Crash, Fault, Harm};
use crate::op::{Edit, Op, Span, Value, Way};
use crate::tickets::USES;
use crate::transactions;

/// A whole run: one seed for the world, options that differ from the default, operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Decides clock, order of background work and what crashes leave.
    pub(crate) seed: u64,
    /// Options of the database, by name.
    pub(crate) options: Vec<(String, String)>,
    /// The operations, in order.
    pub(crate) ops: Vec<Op>,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for (name, value) in &self.options {
            writeln!(f, "option {name}={value}")?;
        }
        self.ops.iter().try_for_each(|op| writeln!(f, "{op}"))
    }
}

impl FromStr for Script {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut script = Script::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let words: Vec<&str> = line.split_whitespace().collect();
            let read = match words.as_slice() {
                [] => Ok(()),
                ["seed", seed] => parse(seed).map(|seed| script.seed = seed),
                ["option", setting] => match setting.split_once('=') {
                    Some((name, value)) => {
                        script.options.push((name.to_owned(), value.to_owned()));
                        Ok(())
                    }
                    None => Err("expected NAME=VALUE".to_owned()),
                },
                words => op(words).map(|op| script.ops.push(op)),
            };
            read.map_err(|why| format!("line {}: {line:?}: {why}", number + 1))?;
        }
        Ok(script)
    }
}

pub(crate) fn parse(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a whole number"))
}

fn op(words: &[&str]) -> Result<Op, String> {
    let name = |text: &str| text.to_owned();
    Ok(match words {
        ["put", table, key, value] => put(table, key, value, false)?,
        ["put", table, key, value, "sync"] => put(table, key, value, true)?,
        ["merge", table, key, value, sync @ ..] => {
            let (key, value) = (parse(key)?, value_of(value)?.ok_or("an operand has a value")?);
            Op::Merge { table: name(table), key, value, sync: !sync.is_empty() }
        }
        ["once", table, key, value] => {
            let (key, value) = (parse(key)?, value_of(value)?.ok_or("a put has a value")?);
            Op::Once { table: name(table), key, value }
        }
        ["putfor", table, key, value, millis] => {
            let (key, value) = (parse(key)?, value_of(value)?.ok_or("a put has a value")?);
            Op::PutFor { table: name(table), key, value, millis: parse(millis)? }
        }
        ["delete", table, key] => Op::Delete { table: name(table), key: parse(key)? },
        ["deleterange", table, from, to] => {
            Op::DeleteRange { table: name(table), from: parse(from)?, to: parse(to)? }
        }
        ["batch", edits @ .., "sync"] => Op::Batch { edits: edits_of(edits)?, sync: true },
        ["batch", edits @ ..] => Op::Batch { edits: edits_of(edits)?, sync: false },
        ["async", how, edits @ ..] => {
            let ticket = USES.iter().find(|(word, _)| word == how).ok_or("expected keep, call or drop")?.1;
            Op::WriteAsync { edits: edits_of(edits)?, ticket }
        }
        ["await", which] => Op::Await { which: parse(which)? },
        ["ingest" | "load" | "dropextents" | "estimate", ..] => bulk::read(words)?,
        ["transact" | "indexed", ..] => transactions::read(words)?,
        ["create", table] => Op::Create { table: name(table), options: 0 },
        ["create", table, options] => Op::Create { table: name(table), options: parse(options)? },
        ["drop", table] => Op::Drop { table: name(table) },
        ["get", table, key, at @ ..] => Op::Get { table: name(table), key: parse(key)?, at: at_of(at)? },
        ["contains", table, key, at @ ..] => {
            Op::Contains { table: name(table), key: parse(key)?, at: at_of(at)? }
        }
        ["multiget", table, keys, at @ ..] => {
            let keys = keys.split(',').filter(|key| *key != "-").map(parse).collect::<Result<_, _>>()?;
            Op::MultiGet { table: name(table), keys, at: at_of(at)? }
        }
        ["scan", table, lower, upper, way, limit, at @ ..] => Op::Scan {
            table: name(table),
            span: span_of(lower, upper)?,
            way: way_of(way)?,
            limit: parse(limit)?,
            at: at_of(at)?,
        },
        ["prefix", table, key, len, at @ ..] => {
            Op::Prefix { table: name(table), key: parse(key)?, len: parse(len)?, at: at_of(at)? }
        }
        ["plain", read @ ..] => Op::Plain(Box::new(op(read)?)),
        ["through", inner @ ..] => Op::Through(Box::new(op(inner)?)),
        ["level", table, level] => Op::Level { table: name(table), level: parse(level)? },
        ["run", table] => Op::Run { table: name(table) },
        ["compact", table, lower, upper] => Op::Compact { table: name(table), span: span_of(lower, upper)? },
        words => world_op(words)?,
    })
}

/// Operations that name no table.
fn world_op(words: &[&str]) -> Result<Op, String> {
    Ok(match words {
        ["snapshot", name] => Op::Snapshot { name: parse(name)? },
        ["release", name] => Op::Release { name: parse(name)? },
        ["checkpoint", name] => Op::Checkpoint { name: parse(name)? },
        ["backup", keep, seed] => Op::Backup { keep: parse(keep)?, seed: parse(seed)? },
        ["restore", seed] => Op::Restore { seed: parse(seed)? },
        ["goback", seed] => Op::GoBack { seed: parse(seed)? },
        ["flush"] => Op::Flush,
        ["scrub"] => Op::Scrub,
        ["peek"] => Op::Peek,
        ["rest"] => Op::Rest,
        ["repair"] => Op::Repair,
        ["follow"] => Op::Follow,
        ["pause"] => Op::Pause,
        ["resume"] => Op::Resume,
        ["cancel"] => Op::Cancel,
        ["sync"] => Op::Sync,
        ["quiesce"] => Op::Quiesce,
        ["steps", count] => Op::Steps { count: parse(count)? },
        ["wait", millis] => Op::Wait { millis: parse(millis)? },
        ["check"] => Op::Check,
        ["reopen", options] => Op::Reopen { options: parse(options)? },
        ["crash", crash, "after", after] => {
            Op::Crash { crash: crash_of(crash)?, after: parse(after)?, again: None }
        }
        ["crash", crash, "after", after, "again", again] => {
            Op::Crash { crash: crash_of(crash)?, after: parse(after)?, again: Some(parse(again)?) }
        }
        ["fault", call, harm, path, "skip", skip] => fault(call, harm, path, skip, false)?,
        ["fault", call, harm, path, "skip", skip, "lasting"] => fault(call, harm, path, skip, true)?,
        ["heal"] => Op::Heal,
        ["room", bytes] => Op::Room { bytes: parse(bytes)? },
        ["rot", seed, path] => Op::Rot { seed: parse(seed)?, path_part: (*path).to_owned() },
        ["decay", seed] => Op::Decay { seed: parse(seed)? },
        ["during", after, inner @ ..] => Op::During { after: parse(after)?, op: Box::new(op(inner)?) },
        _ => return Err("no such operation".to_owned()),
    })
}

fn put(table: &str, key: &str, value: &str, sync: bool) -> Result<Op, String> {
    let value = value_of(value)?.ok_or("a put has a value")?;
    Ok(Op::Put { table: table.to_owned(), key: parse(key)?, value, sync })
}

fn value_of(text: &str) -> Result<Option<Value>, String> {
    if text == "-" {
        return Ok(None);
    }
    let (len, stamp) = text.split_once(':').ok_or("expected LENGTH:STAMP or -")?;
    Ok(Some(Value { len: parse(len)?, stamp: parse(stamp)? }))
}

fn edits_of(words: &[&str]) -> Result<Vec<Edit>, String> {
    let edit = |word: &&str| {
        let mut parts = word.splitn(3, ':');
        let (Some(table), Some(key), Some(value)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("{word:?}: expected TABLE:KEY:VALUE"));
        };
        Ok(Edit { table: table.to_owned(), key: parse(key)?, value: value_of(value)? })
    };
    words.iter().map(edit).collect()
}

fn at_of(words: &[&str]) -> Result<Option<u64>, String> {
    match words {
        [] => Ok(None),
        ["at", name] => parse(name).map(Some),
        _ => Err("expected nothing more, or: at SNAPSHOT".to_owned()),
    }
}

fn span_of(lower: &str, upper: &str) -> Result<Span, String> {
    let bound = |text: &str, open: char, closed: char| {
        if let Some(key) = text.strip_prefix(closed) {
            return parse(key).map(Bound::Included);
        }
        match text.strip_prefix(open) {
            Some("-") => Ok(Bound::Unbounded),
            Some(key) => parse(key).map(Bound::Excluded),
            None => Err(format!("{text:?} is not a bound")),
        }
    };
    Ok(Span { lower: bound(lower, '(', '[')?, upper: bound(upper, ')', ']')? })
}

fn way_of(text: &str) -> Result<Way, String> {
    match (text, text.split_once(':')) {
        ("forward", _) => Ok(Way::Forward),
        ("backward", _) => Ok(Way::Backward),
        (_, Some(("both", turns))) => parse(turns).map(Way::Both),
        (_, Some(("cursor", turns))) => parse(turns).map(Way::Cursor),
        _ => Err("expected forward, backward, both:N or cursor:N".to_owned()),
    }
}

fn crash_of(text: &str) -> Result<Crash, String> {
    match (text, text.split_once(':')) {
        ("kill", _) => Ok(Crash::Kill),
        (_, Some(("power", seed))) => parse(seed).map(Crash::Power),
        (_, Some(("outcome", number))) => parse(number).map(Crash::Outcome),
        _ => Err("expected kill, power:SEED or outcome:NUMBER".to_owned()),
    }
}

fn fault(call: &str, harm: &str, path: &str, skip: &str, lasting: bool) -> Result<Op, String> {
    let call = Call::ALL.into_iter().find(|known| format!("{known:?}") == call).ok_or("no such call")?;
    let harm = match (harm, harm.split_once(':')) {
        ("broken", _) => Harm::Broken,
        ("full", _) => Harm::Full,
        ("lie", _) => Harm::Lie,
        ("short", _) => Harm::Short,
        ("lost", _) => Harm::Lost,
        (_, Some(("flip", seed))) => Harm::Flip(parse(seed)?),
        (_, Some(("misdirected", seed))) => Harm::Misdirected(parse(seed)?),
        _ => return Err("no such harm".to_owned()),
    };
    let path_part = if path == "*" { String::new() } else { path.to_owned() };
    Ok(Op::Fault(Fault { call, path_part, harm, skip: parse(skip)?, lasting }))
}

//! Operations as a script has them.

use std::fmt;
use std::ops::Bound;

use crate::bulk;
use crate::fault::{Crash, Harm};
use crate::op::{Edit, Op, Span, Value, Way};
use crate::transactions;

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Put { table, key, value, sync } => {
                write!(f, "put {table} {key} {}{}", show_value(Some(*value)), mark(*sync, "sync"))
            }
            Op::Merge { table, key, value, sync } => {
                write!(f, "merge {table} {key} {}{}", show_value(Some(*value)), mark(*sync, "sync"))
            }
            Op::Once { table, key, value } => write!(f, "once {table} {key} {}", show_value(Some(*value))),
            Op::PutFor { table, key, value, millis } => {
                write!(f, "putfor {table} {key} {} {millis}", show_value(Some(*value)))
            }
            Op::Delete { table, key } => write!(f, "delete {table} {key}"),
            Op::DeleteRange { table, from, to } => write!(f, "deleterange {table} {from} {to}"),
            Op::Batch { edits, sync } => {
                f.write_str("batch")?;
                show_edits(f, edits)?;
                f.write_str(mark(*sync, "sync"))
            }
            op if bulk::is_one(op) => bulk::show(op, f),
            Op::Transact { .. } | Op::Indexed { .. } => transactions::show(self, f),
            Op::WriteAsync { .. } | Op::Await { .. } => show_async(self, f),
            Op::Create { table, options: 0 } => write!(f, "create {table}"),
            Op::Create { table, options } => write!(f, "create {table} {options}"),
            Op::Drop { table } => write!(f, "drop {table}"),
            Op::Get { table, key, at } => write!(f, "get {table} {key}{}", At(*at)),
            Op::Contains { table, key, at } => write!(f, "contains {table} {key}{}", At(*at)),
            Op::MultiGet { table, keys, at } => {
                let keys: Vec<_> = keys.iter().map(u64::to_string).collect();
                let keys = if keys.is_empty() { "-".to_owned() } else { keys.join(",") };
                write!(f, "multiget {table} {keys}{}", At(*at))
            }
            Op::Scan { table, span, way, limit, at } => {
                write!(f, "scan {table} {} {} {limit}{}", show_span(*span), show_way(*way), At(*at))
            }
            Op::Prefix { table, key, len, at } => write!(f, "prefix {table} {key} {len}{}", At(*at)),
            Op::Plain(op) => write!(f, "plain {op}"),
            Op::Through(op) => write!(f, "through {op}"),
            Op::Snapshot { name } => write!(f, "snapshot {name}"),
            Op::Release { name } => write!(f, "release {name}"),
            Op::Compact { table, span } => write!(f, "compact {table} {}", show_span(*span)),
            Op::Level { table, level } => write!(f, "level {table} {level}"),
            Op::Run { table } => write!(f, "run {table}"),
            Op::Steps { count } => write!(f, "steps {count}"),
            Op::Wait { millis } => write!(f, "wait {millis}"),
            Op::Reopen { options } => write!(f, "reopen {options}"),
            Op::Crash { crash, after, again } => {
                write!(f, "crash {} after {after}", show_crash(*crash))?;
                again.map_or(Ok(()), |again| write!(f, " again {again}"))
            }
            Op::Fault(fault) => write!(
                f,
                "fault {:?} {} {} skip {}{}",
                fault.call,
                show_harm(fault.harm),
                if fault.path_part.is_empty() { "*" } else { &fault.path_part },
                fault.skip,
                mark(fault.lasting, "lasting")
            ),
            Op::Checkpoint { name } => write!(f, "checkpoint {name}"),
            Op::Backup { keep, seed } => write!(f, "backup {keep} {seed}"),
            Op::Restore { seed } | Op::GoBack { seed } => write!(f, "{} {seed}", word(self)),
            Op::Room { bytes } => write!(f, "room {bytes}"),
            Op::Rot { seed, path_part } => write!(f, "rot {seed} {path_part}"),
            Op::Decay { seed } => write!(f, "decay {seed}"),
            Op::During { after, op } => write!(f, "during {after} {op}"),
            op => f.write_str(word(op)),
        }
    }
}

fn show_async(op: &Op, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match op {
        Op::WriteAsync { edits, ticket } => {
            write!(f, "async {ticket}")?;
            show_edits(f, edits)
        }
        Op::Await { which } => write!(f, "await {which}"),
        _ => unreachable!("no other operation has to do with tickets"),
    }
}

fn show_edits(f: &mut fmt::Formatter<'_>, edits: &[Edit]) -> fmt::Result {
    let mut edits = edits.iter();
    edits.try_for_each(|Edit { table, key, value }| write!(f, " {table}:{key}:{}", show_value(*value)))
}

/// An operation that needs nothing more said.
fn word(op: &Op) -> &'static str {
    match op {
        Op::Restore { .. } => "restore",
        Op::GoBack { .. } => "goback",
        Op::Flush => "flush",
        Op::Scrub => "scrub",
        Op::Pause => "pause",
        Op::Resume => "resume",
        Op::Cancel => "cancel",
        Op::Sync => "sync",
        Op::Quiesce => "quiesce",
        Op::Rest => "rest",
        Op::Peek => "peek",
        Op::Repair => "repair",
        Op::Follow => "follow",
        Op::Check => "check",
        Op::Heal => "heal",
        _ => unreachable!("shown with what it does"),
    }
}

/// ` at SNAPSHOT`, or nothing.
struct At(Option<u64>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, " at {name}"))
    }
}

fn mark(is_set: bool, word: &'static str) -> &'static str {
    match (is_set, word) {
        (true, "sync") => " sync",
        (true, _) => " lasting",
        (false, _) => "",
    }
}

fn show_value(value: Option<Value>) -> String {
    value.map_or("-".to_owned(), |value| format!("{}:{}", value.len, value.stamp))
}

fn show_span(span: Span) -> String {
    let lower = match span.lower {
        Bound::Included(key) => format!("[{key}"),
        Bound::Excluded(key) => format!("({key}"),
        Bound::Unbounded => "(-".to_owned(),
    };
    let upper = match span.upper {
        Bound::Included(key) => format!("]{key}"),
        Bound::Excluded(key) => format!("){key}"),
        Bound::Unbounded => ")-".to_owned(),
    };
    format!("{lower} {upper}")
}

fn show_way(way: Way) -> String {
    match way {
        Way::Forward => "forward".to_owned(),
        Way::Backward => "backward".to_owned(),
        Way::Both(turns) => format!("both:{turns}"),
        Way::Cursor(turns) => format!("cursor:{turns}"),
    }
}

fn show_crash(crash: Crash) -> String {
    match crash {
        Crash::Kill => "kill".to_owned(),
        Crash::Power(seed) => format!("power:{seed}"),
        Crash::Outcome(number) => format!("outcome:{number}"),
    }
}

fn show_harm(harm: Harm) -> String {
    match harm {
        Harm::Broken => "broken".to_owned(),
        Harm::Full => "full".to_owned(),
        Harm::Lie => "lie".to_owned(),
        Harm::Short => "short".to_owned(),
        Harm::Lost => "lost".to_owned(),
        Harm::Flip(seed) => format!("flip:{seed}"),
        Harm::Misdirected(seed) => format!("misdirected:{seed}"),
    }
}

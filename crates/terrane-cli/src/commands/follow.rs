//! `--follow` of what shows a state: again each second, until a signal, also beside a writer.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane::{Db, Follower};
use terrane_base::env::Env;

use super::deployment::{self, Target};
use super::functions;
use super::store::{Access, open, options};
use crate::arguments::Engine;
use crate::exit::{Code, Failure};
use crate::signals::stop_on_signals;

/// Time between two states.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between two looks at the stop flag.
const TURN: Duration = Duration::from_millis(50);

/// Shows a database once, or again and again if it is followed.
pub(super) fn each_second(
    engine: &Engine,
    path: &Path,
    follows: bool,
    out: &mut dyn Write,
    show: &mut dyn FnMut(&Db, &mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !follows {
        return show(&open(engine, path, Access::Read)?, out);
    }
    if engine.moment().is_some() {
        let why = "--follow shows the present state, and --at and --at-commit an earlier one: leave one out";
        return Err(Failure::new(Code::Usage, why));
    }
    let stop = stop_on_signals()?;
    let clock = Env::real().clock;
    let follower = match &engine.opened {
        Some(_) => None,
        None => Some(open_follower(engine, path)?),
    };
    loop {
        match &follower {
            Some(follower) => show(&follower.view(), out)?,
            None => show(&open(engine, path, Access::Read)?, out)?,
        }
        writeln!(out)?;
        out.flush()?;
        let next = clock.now() + PAUSE;
        while clock.now() < next {
            // Acquire: pairs with the store of the thread that waits for signals.
            if stop.load(Ordering::Acquire) {
                return Ok(());
            }
            clock.sleep(TURN);
        }
        if let Some(follower) = &follower {
            follower.catch_up()?;
        }
    }
}

/// Follows a database: in a directory, or as a deployment file says.
fn open_follower(engine: &Engine, path: &Path) -> Result<Follower, Failure> {
    match deployment::target(path)? {
        Target::Deployment(parts) => deployment::follow(engine, path, &parts),
        Target::Directory => {
            Ok(Db::open_follower_with(path, &options(engine, Access::Read)?, functions::reading())?)
        }
    }
}

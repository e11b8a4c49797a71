//! `serve compactor`: runs compactions of a database for its writer, until a signal.

use std::io::Write;
use std::sync::Arc;

use terrane_base::Error;
use terrane_base::env::Env;
use terrane_base::sync::Mutex;
use terrane_remote::jobs::{Stop, Worker, WorkerSettings};
use terrane_remote::{BucketStoreSettings, Deployment};

use crate::arguments::serve::Compactor;
use crate::exit::Failure;
use crate::signals::act_on_signal;
use crate::text;

pub(super) fn run(command: &Compactor, out: &mut dyn Write) -> Result<(), Failure> {
    let stop = Stop::default();
    let asked = stop.clone();
    // Before the first claim: a signal from now on ends it in good order.
    let _acting = act_on_signal(move || asked.ask())?;
    let env = Env::real();
    let deployment = Deployment::read(&command.deployment)?;
    let bucket = deployment.open_bucket(&env)?;
    let name = command.name.clone().unwrap_or_else(|| format!("worker-{:08x}", env.random.next_u64() as u32));
    let workers = (1..=command.threads)
        .map(|thread| {
            let name = if command.threads == 1 { name.clone() } else { format!("{name}.{thread}") };
            let poll = std::time::Duration::from_millis(command.poll);
            let settings = WorkerSettings { name, poll, store: store_settings(command, &deployment) };
            Worker::new(bucket.clone(), &deployment.prefix, settings, env.clone())
        })
        .collect::<Result<Vec<Worker>, Error>>()?;
    let shown = text::shown(format!("{}/{}", deployment.url, deployment.prefix));
    writeln!(out, "{name} waits for compactions of {shown}, {} at once", command.threads)?;
    out.flush()?;
    run_all(workers, command, &stop, &env)?;
    writeln!(out, "stopped: no job is claimed")?;
    Ok(())
}

fn store_settings(command: &Compactor, deployment: &Deployment) -> BucketStoreSettings {
    let settings = BucketStoreSettings { probe: false, ..deployment.settings };
    match command.memory {
        Some(bytes) => BucketStoreSettings { stage_bytes: bytes / u64::from(command.threads), ..settings },
        None => settings,
    }
}

/// Runs the workers, each on a thread of its own, until all have ended. Their lines go to standard error.
fn run_all(workers: Vec<Worker>, command: &Compactor, stop: &Stop, env: &Env) -> Result<(), Failure> {
    let failed: Arc<Mutex<Option<Error>>> = Arc::default();
    let mut threads = Vec::new();
    for worker in workers {
        let (stop, idle_max, failed) = (stop.clone(), command.idle_max(), failed.clone());
        let body = move || {
            let mut print = |line: &str| eprintln!("terrane: {}", text::shown(line.replace('\n', " ")));
            if let Err(error) = worker.run(&stop, idle_max, &mut print) {
                failed.lock().get_or_insert(error);
                stop.ask();
            }
        };
        threads.push(env.spawn.spawn("terrane-worker", Box::new(body))?);
    }
    threads.into_iter().for_each(terrane_base::env::Joiner::join);
    let failed = failed.lock().take();
    failed.map_or(Ok(()), |error| Err(error.into()))
}

//! `serve`: a part of databases for other machines, until a signal.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use terrane_base::env::{Env, Joiner};
use terrane_remote::Bucket;
use terrane_remote::bucket::{DirectoryBucket, LogBucket, LogSettings};
use terrane_remote::grpc::{Limits, Report, Server, ServerSettings, TlsFiles, Token};

use crate::arguments::serve::{Journal, Part, Serve, Service};
use crate::exit::{Code, Failure};
use crate::signals::stop_on_signals;
use crate::text;

/// Time between two looks at the stop flag.
const TURN: Duration = Duration::from_millis(50);
/// Turns between two looks whether the log is idle.
const IDLE_TURNS: u64 = 20;
/// Time until the same line is printed again.
const LOG_AGAIN: Duration = Duration::from_secs(60);

/// Serves a part.
pub(super) fn run(command: &Serve, out: &mut dyn Write) -> Result<(), Failure> {
    match &command.part {
        Part::Storage(service) => serve(service, "bucket", out, |env| {
            let bucket = DirectoryBucket::open(&service.directory, env.clone())?;
            Ok((Arc::new(bucket), None))
        }),
        Part::Journal(Journal { service, objects }) => serve(service, "log of journals", out, |env| {
            let settings = LogSettings { objects_max: *objects as usize, ..LogSettings::default() };
            let log = LogBucket::on_disk(&service.directory, settings, env.clone())?;
            Ok((Arc::new(log.clone()), Some(log)))
        }),
        Part::Compactor(compactor) => super::serve_compactor::run(compactor, out),
    }
}

/// Serves what `open` opens, until a signal.
fn serve(
    service: &Service,
    what: &str,
    out: &mut dyn Write,
    open: impl FnOnce(&Env) -> terrane_base::Result<(Arc<dyn Bucket>, Option<LogBucket>)>,
) -> Result<(), Failure> {
    // Before the service: a signal from now on ends it in good order.
    let stop = stop_on_signals()?;
    let env = Env::real();
    let (bucket, log) = open(&env)?;
    let settings = settings(service)?;
    warn(service, &settings);
    let server = Server::start(bucket, &settings, &env)?;
    assert_eq!(server.metrics_address().is_some(), service.metrics.is_some(), "each address is listened on");
    announce(service, (what, &settings), &server, out)?;
    let keeper = log.as_ref().map(|log| keep(log, &stop, &env)).transpose()?;
    // Acquire: pairs with the store of the thread that waits for signals.
    while !stop.load(Ordering::Acquire) {
        env.clock.sleep(TURN);
    }
    let is_answered = server.stop(service.stop_time);
    keeper.into_iter().for_each(Joiner::join);
    let _ = log.as_ref().map(LogBucket::mark);
    if !is_answered {
        let seconds = service.stop_time.as_secs();
        let message = format!("calls still ran {seconds} s after the signal: their clients try them again");
        return Err(Failure::new(Code::Stopped, message));
    }
    writeln!(out, "stopped: every call was answered")?;
    Ok(())
}

/// Looks after a log until the stop, by a thread of its own: a device that hangs must not keep the signal
/// from being seen.
fn keep(log: &LogBucket, stop: &Arc<AtomicBool>, env: &Env) -> terrane_base::Result<Box<dyn Joiner>> {
    let (log, stop, clock) = (log.clone(), Arc::clone(stop), env.clock.clone());
    let keep = move || {
        let mut logged = LoggedLines::default();
        for turn in 0u64.. {
            // Acquire: as that of the service.
            if stop.load(Ordering::Acquire) {
                return;
            }
            clock.sleep(TURN);
            if turn % IDLE_TURNS == 0 {
                look_after(&log, &mut logged, clock.now());
            }
        }
    };
    env.spawn.spawn("terrane-log-keeper", Box::new(keep))
}

/// Marks a log that is idle, and prints its trouble.
fn look_after(log: &LogBucket, logged: &mut LoggedLines, now: Duration) {
    // A mark that fails loses nothing: the next changes return the error.
    let _ = log.mark_if_idle();
    if let Some(error) = log.take_trouble() {
        let line = text::shown(error.to_string().replace('\n', " "));
        assert!(!line.contains('\n'), "one line for each trouble");
        if logged.is_due(&line, now) {
            eprintln!("terrane: {line}");
        }
    }
}

/// The lines that were logged, and when.
#[derive(Default)]
struct LoggedLines(BTreeMap<String, Duration>);

impl LoggedLines {
    /// Returns true if a line was not logged for a while; it counts as logged then.
    fn is_due(&mut self, line: &str, now: Duration) -> bool {
        self.0.retain(|_, at| *at + LOG_AGAIN > now);
        let is_due = !self.0.contains_key(line);
        if is_due {
            self.0.insert(line.to_owned(), now);
        }
        is_due
    }
}

fn settings(service: &Service) -> Result<ServerSettings, Failure> {
    let token = match &service.token_file {
        Some(path) => Some(Token::read(path)?),
        None => Token::of_environment()?,
    };
    let tls = service.tls_certificate.as_ref().map(|certificate| TlsFiles {
        certificate: Some(certificate.clone()),
        key: service.tls_key.clone(),
        authority: service.tls_authority.clone(),
    });
    let limits = Limits {
        object_bytes_max: service.object_bytes,
        bytes_in_flight_max: service.bytes_in_flight,
        calls_max: service.calls,
        connections_max: service.connections,
        ..Limits::default()
    };
    Ok(ServerSettings {
        metrics: service.metrics,
        token,
        tls,
        limits,
        log: Some(Arc::new(log)),
        ..ServerSettings::new(service.listen)
    })
}

/// Says what others on the network could do.
fn warn(service: &Service, settings: &ServerSettings) {
    if service.listen.ip().is_loopback() {
        return;
    }
    let address = service.listen;
    if settings.token.is_none() && service.tls_authority.is_none() {
        eprintln!(
            "terrane: warning: {address} is open to the network without a token: each program that reaches it \
             can read and delete everything; set TERRANE_TOKEN"
        );
    }
    if settings.tls.is_none() {
        eprintln!(
            "terrane: warning: {address} is open to the network without encryption: token and data can be read \
             by others; use --tls-certificate, or a network that is private"
        );
    }
}

/// One line: the served bucket, the address, and the limits.
fn announce(
    service: &Service,
    (what, settings): (&str, &ServerSettings),
    server: &Server,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scheme = if settings.tls.is_some() { "grpcs" } else { "grpc" };
    let directory = text::shown(service.directory.display().to_string());
    let limits = &settings.limits;
    write!(
        out,
        "serving the {what} {directory} at {scheme}://{}: objects up to {} bytes, {} bytes in flight, {} calls, {} \
         connections",
        server.address(),
        limits.object_bytes_max,
        limits.bytes_in_flight_max,
        limits.calls_max,
        limits.connections_max
    )?;
    if let Some(address) = server.metrics_address() {
        write!(out, "; metrics at http://{address}/metrics")?;
    }
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// A call that failed, as one line on standard error.
fn log(report: &Report<'_>) {
    if !report.is_trouble() {
        return;
    }
    let peer = report.peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
    let line = format!(
        "{} {} {} from {peer} after {} ms, trace {}: {}",
        report.outcome,
        report.operation,
        report.object,
        report.took.as_millis(),
        report.trace.unwrap_or("none"),
        report.text
    );
    eprintln!("terrane: {}", text::shown(line.replace('\n', " ")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_troubles_are_logged_once_in_a_minute_each() {
        let mut logged = LoggedLines::default();
        let lines = (0..150).map(|second| (second, ["a", "b"][second as usize % 2]));
        let due = lines.filter(|(second, line)| logged.is_due(line, Duration::from_secs(*second)));
        assert_eq!(due.map(|(second, _)| second).collect::<Vec<_>>(), [0, 1, 60, 61, 120, 121]);
        assert!(logged.0.len() <= 2, "old ones are forgotten");
    }
}

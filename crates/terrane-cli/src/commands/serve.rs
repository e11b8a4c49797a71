//! `serve`: a part of databases for other machines, until a signal.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane_base::env::Env;
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
    let mut told = String::new();
    for turn in 0u64.. {
        // Acquire: pairs with the store of the thread that waits for signals.
        if stop.load(Ordering::Acquire) {
            break;
        }
        env.clock.sleep(TURN);
        if let Some(log) = log.as_ref().filter(|_| turn % IDLE_TURNS == 0) {
            look_after(log, &mut told);
        }
    }
    let is_answered = server.stop(service.stop_time);
    let _ = log.as_ref().map(LogBucket::mark);
    if !is_answered {
        let seconds = service.stop_time.as_secs();
        let message = format!("calls still ran {seconds} s after the signal: their clients try them again");
        return Err(Failure::new(Code::Stopped, message));
    }
    writeln!(out, "stopped: every call was answered")?;
    Ok(())
}

/// Marks a log that is idle, and tells its trouble, each kind once in a row.
fn look_after(log: &LogBucket, told: &mut String) {
    // A mark that fails loses nothing: the next changes tell.
    let _ = log.mark_if_idle();
    if let Some(error) = log.take_trouble() {
        let line = text::shown(error.to_string().replace('\n', " "));
        assert!(!line.contains('\n'), "one line for each trouble");
        if line != *told {
            eprintln!("terrane: {line}");
            *told = line;
        }
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

/// One line: what is served, where, and the limits.
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

//! `serve`: a part of databases for other machines, until a signal.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_remote::bucket::DirectoryBucket;
use terrane_remote::grpc::{Limits, Report, Server, ServerSettings, TlsFiles, Token};

use crate::arguments::serve::{Part, Serve, Storage};
use crate::exit::{Code, Failure};
use crate::signals::stop_on_signals;
use crate::text;

/// Time between two looks at the stop flag.
const TURN: Duration = Duration::from_millis(50);

/// Serves a part.
pub(super) fn run(command: &Serve, out: &mut dyn Write) -> Result<(), Failure> {
    match &command.part {
        Part::Storage(storage) => serve_storage(storage, out),
        Part::Compactor(compactor) => super::serve_compactor::run(compactor, out),
    }
}

fn serve_storage(storage: &Storage, out: &mut dyn Write) -> Result<(), Failure> {
    // Before the service: a signal from now on ends it in good order.
    let stop = stop_on_signals()?;
    let env = Env::real();
    let bucket = DirectoryBucket::open(&storage.directory, env.clone())?;
    let settings = settings(storage)?;
    warn(storage, &settings);
    let server = Server::start(Arc::new(bucket), &settings, &env)?;
    assert_eq!(server.metrics_address().is_some(), storage.metrics.is_some(), "each address is listened on");
    announce(storage, &settings, &server, out)?;
    // Acquire: pairs with the store of the thread that waits for signals.
    while !stop.load(Ordering::Acquire) {
        env.clock.sleep(TURN);
    }
    if !server.stop(storage.stop_time) {
        let seconds = storage.stop_time.as_secs();
        let message = format!("calls still ran {seconds} s after the signal: their clients try them again");
        return Err(Failure::new(Code::Stopped, message));
    }
    writeln!(out, "stopped: every call was answered")?;
    Ok(())
}

fn settings(storage: &Storage) -> Result<ServerSettings, Failure> {
    let token = match &storage.token_file {
        Some(path) => Some(Token::read(path)?),
        None => Token::of_environment()?,
    };
    let tls = storage.tls_certificate.as_ref().map(|certificate| TlsFiles {
        certificate: Some(certificate.clone()),
        key: storage.tls_key.clone(),
        authority: storage.tls_authority.clone(),
    });
    let limits = Limits {
        object_bytes_max: storage.object_bytes,
        bytes_in_flight_max: storage.bytes_in_flight,
        calls_max: storage.calls,
        connections_max: storage.connections,
        ..Limits::default()
    };
    Ok(ServerSettings {
        metrics: storage.metrics,
        token,
        tls,
        limits,
        log: Some(Arc::new(log)),
        ..ServerSettings::new(storage.listen)
    })
}

/// Says what others on the network could do.
fn warn(storage: &Storage, settings: &ServerSettings) {
    if storage.listen.ip().is_loopback() {
        return;
    }
    let address = storage.listen;
    if settings.token.is_none() && storage.tls_authority.is_none() {
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
    storage: &Storage,
    settings: &ServerSettings,
    server: &Server,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let scheme = if settings.tls.is_some() { "grpcs" } else { "grpc" };
    let directory = text::shown(storage.directory.display().to_string());
    let limits = &settings.limits;
    write!(
        out,
        "serving the bucket {directory} at {scheme}://{}: objects up to {} bytes, {} bytes in flight, {} calls, {} \
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

//! `serve` as a process.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::Shell;

/// A service on a free port, and the line that it said.
fn serve(shell: &Shell, arguments: &str) -> (Child, BufReader<ChildStdout>, String) {
    let line = format!("serve storage --directory bucket --listen 127.0.0.1:0 {arguments}");
    let mut child = shell
        .command(&line)
        .env_remove("TERRANE_TOKEN")
        .env_remove("TERRANE_TOKEN_FILE")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (child, said, line)
}

/// The text between `from` and `to`.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let (_, rest) = text.split_once(from).unwrap();
    rest.split_once(to).unwrap().0
}

#[test]
fn a_bucket_is_served_until_a_signal() {
    let shell = Shell::new();
    shell.file("token", "the-token\n");
    let (mut child, mut said, line) =
        serve(&shell, "--metrics 127.0.0.1:0 --token-file token --object-bytes 1000");
    assert!(
        line.contains("bucket at grpc://127.0.0.1:") && line.contains("objects up to 1000 bytes"),
        "{line}"
    );
    let address = between(&line, "grpc://", ": ").to_owned();
    shell.fails(
        &format!("serve storage --directory other --listen {address}"),
        6,
        &["cannot listen on", &address],
    );
    let mut page = TcpStream::connect(between(&line, "http://", "/metrics")).unwrap();
    page.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    page.read_to_string(&mut text).unwrap();
    assert!(text.contains("terrane_service_connections 0"), "{text}");
    assert!(shell.path("bucket/.terrane/identity").is_file());
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "stopped: every call was answered\n");
}

#[test]
fn a_serve_that_is_impossible_says_the_reason() {
    let shell = Shell::new();
    shell.file("empty", "\n");
    let serve = "serve storage --directory bucket --listen 127.0.0.1:0";
    shell.fails(&format!("{serve} --token-file empty"), 2, &["empty", "token"]);
    shell.fails(&format!("{serve} --token-file none"), 1, &["none"]);
    shell.fails(&format!("{serve} --object-bytes 0"), 2, &["limit"]);
    shell.fails(&format!("{serve} --bytes-in-flight 100"), 2, &["100 bytes in flight"]);
    shell.file("file", "x");
    shell.fails("serve storage --directory file/bucket --listen 127.0.0.1:0", 2, &["file"]);
}

#[test]
fn a_journal_service_has_a_directory_of_its_own_until_a_signal() {
    let shell = Shell::new();
    let (mut storage, _said, _) = serve(&shell, "");
    storage.kill().unwrap();
    storage.wait().unwrap();
    let serve = "serve journal --listen 127.0.0.1:0 --directory";
    shell.fails(&format!("{serve} bucket"), 2, &["not of a log", "directory of its own"]);
    let mut command = shell.command(&format!("{serve} journals"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("serving the log of journals") && line.contains("grpc://127.0.0.1:"), "{line}");
    shell.fails(&format!("{serve} journals"), 5, &["journals"]);
    let storage = "serve storage --listen 127.0.0.1:0 --directory journals";
    shell.fails(storage, 2, &["journals", "log"]);
    assert!(!shell.path("journals/.terrane").exists(), "nothing is made in the directory of a log");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "stopped: every call was answered\n");
}

#[test]
fn a_service_for_the_network_without_a_token_warns() {
    let shell = Shell::new();
    let mut child = shell
        .command("serve storage --directory bucket --listen 0.0.0.0:0")
        .env_remove("TERRANE_TOKEN")
        .env_remove("TERRANE_TOKEN_FILE")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let (mut first, mut second) = (String::new(), String::new());
    errors.read_line(&mut first).unwrap();
    errors.read_line(&mut second).unwrap();
    assert!(first.contains("without a token") && second.contains("without encryption"), "{first}{second}");
    child.kill().unwrap();
    child.wait().unwrap();
}

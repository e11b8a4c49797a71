//! Encrypted connections, with certificates of both sides. Those of the tests lie in `tests/tls` and are
//! valid for a hundred years; their keys protect nothing.

use std::path::PathBuf;

use terrane_base::Kind;
use terrane_base::env::Env;
use terrane_remote::bucket::{Bucket, Create};
use terrane_remote::grpc::{GrpcBucket, GrpcBucketSettings, Server, ServerSettings, TlsFiles};

use super::start;
use crate::support::{connect, env, memory, refused};

fn file(name: &str) -> Option<PathBuf> {
    Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name))
}

fn files(name: &str, authority: &str) -> TlsFiles {
    let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key.pem")));
    TlsFiles { certificate, key, authority: file(authority) }
}

fn connect_with(server: &Server, tls: TlsFiles) -> GrpcBucket {
    let settings = GrpcBucketSettings { tls, ..GrpcBucketSettings::default() };
    GrpcBucket::new(&format!("grpcs://{}", server.address()), settings, Env::real()).expect("an address")
}

#[test]
fn both_sides_show_certificates() {
    let served = memory(&env().1);
    let tls = files("server", "authority.pem");
    let server = start(served.clone(), |settings| settings.tls = Some(tls));
    let right = connect_with(&server, files("client", "authority.pem"));
    assert_eq!(right.create("db/a", b"x").expect("created"), Create::Created);
    assert_eq!(right.get("db/a", 9).expect("reads"), "x");
    let none = TlsFiles { certificate: None, key: None, authority: file("authority.pem") };
    refused(connect_with(&server, none).create("db/b", b"x"), Kind::Io);
    let other = connect_with(&server, files("client", "other-authority.pem"));
    refused(other.create("db/b", b"x"), Kind::Io);
    refused(connect(server.address()).create("db/b", b"x"), Kind::Io);
    assert_eq!(served.list("db", None).expect("lists").len(), 1);
    assert_eq!(right.get("db/a", 9).expect("the others go on"), "x");
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let url = "grpcs://127.0.0.1:1";
    let open = |tls: TlsFiles| {
        let settings = GrpcBucketSettings { tls, ..GrpcBucketSettings::default() };
        GrpcBucket::new(url, settings, Env::real())
    };
    let message = refused(open(TlsFiles::default()), Kind::Invalid);
    assert!(message.contains("TERRANE_TLS_AUTHORITY"), "{message}");
    let half = TlsFiles { key: None, ..files("client", "authority.pem") };
    assert!(refused(open(half), Kind::Invalid).contains("needs its key"));
    refused(open(files("none", "authority.pem")), Kind::NotFound);
    let settings = ServerSettings::new(([127, 0, 0, 1], 0).into());
    let settings = ServerSettings { tls: Some(TlsFiles::default()), ..settings };
    let started = Server::start(memory(&env().1), &settings, &Env::real());
    assert!(refused(started, Kind::Invalid).contains("certificate and its key"));
}

//! Headers, errors and checksums, for both sides.
//!
//! An error of the server's bucket travels as a status whose header `terrane-kind` has the kind. A status
//! without it comes from the transport, from a proxy or from a library: the outcome is unknown then, but for
//! the codes that say that a call never began.

use std::error::Error as _;

use bytes::Bytes;
use terrane_base::{Error, Kind};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::{Body as AnyBody, StdError};
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::{Code, Status};

use super::messages::ReadPart;

/// The version of the protocol. Both sides of a call have the same one.
pub const PROTOCOL: u32 = 1;

/// The header with the version of the protocol.
pub(super) const PROTOCOL_HEADER: &str = "terrane-protocol";
/// The header with the version of the client's program.
pub(super) const PROGRAM_HEADER: &str = "terrane-program";
/// The header with the identity of the bucket that the client has in mind, in hexadecimal digits.
pub(super) const BUCKET_HEADER: &str = "terrane-bucket";
/// The header by which an error names its kind.
pub(super) const KIND_HEADER: &str = "terrane-kind";
/// The header that a trace is known by: W3C Trace Context.
pub(super) const TRACE_HEADER: &str = "traceparent";
/// The version of this program.
pub(super) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Most bytes of a message, on both sides.
pub(super) const MESSAGE_BYTES_MAX: usize = 2 << 20;
/// Most bytes of an object in one message.
pub(super) const PART_BYTES_MAX: usize = 1 << 20;
/// Bytes of an object that this program puts into one message.
pub(super) const PART_BYTES: usize = 512 << 10;
/// Most ranges of one request.
pub(super) const RANGES_MAX: usize = 4096;
/// Most bytes of all ranges of one request.
pub(super) const READ_BYTES_MAX: u64 = 16 << 20;
/// Most names of one request, or in one page.
pub(super) const NAMES_MAX: usize = 1000;
/// Bytes of an identity.
pub(super) const IDENTITY_BYTES: usize = 16;
/// Longest text of an error: it is sent in a header.
const TEXT_BYTES_MAX: usize = 2048;

/// Carries the calls of a client: a connection, or a service of the same process.
pub(super) trait Transport:
    GrpcService<
        Body,
        Error: Into<StdError>,
        ResponseBody: AnyBody<Data = Bytes, Error: Into<StdError> + Send> + Send + 'static,
    > + Clone
{
}

impl<T> Transport for T where
    T: GrpcService<
            Body,
            Error: Into<StdError>,
            ResponseBody: AnyBody<Data = Bytes, Error: Into<StdError> + Send> + Send + 'static,
        > + Clone
{
}

/// The kinds that a bucket's errors have, and their codes.
const KINDS: [(Kind, Code); 6] = [
    (Kind::Busy, Code::ResourceExhausted),
    (Kind::Invalid, Code::InvalidArgument),
    (Kind::Full, Code::ResourceExhausted),
    (Kind::Corrupt, Code::DataLoss),
    (Kind::Io, Code::Unavailable),
    (Kind::NotFound, Code::NotFound),
];

/// The status of an error of the server's bucket. A kind that no bucket returns does not explain the failure,
/// so it becomes `Io`.
pub(super) fn status(error: &Error) -> Status {
    let named = KINDS.iter().find(|(kind, _)| *kind == error.kind());
    let (kind, code) = *named.unwrap_or(&(Kind::Io, Code::Unavailable));
    refusal(code, kind, error.to_string())
}

/// A status that names its kind.
pub(super) fn refusal(code: Code, kind: Kind, text: impl Into<String>) -> Status {
    debug_assert!(KINDS.iter().any(|(known, _)| *known == kind), "the client knows {kind:?}");
    let mut text: String = text.into();
    if let Some(end) = (0..=TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)) {
        text.truncate(end);
    }
    let mut status = Status::new(code, text);
    status.metadata_mut().insert(KIND_HEADER, AsciiMetadataValue::from_static(kind.as_str()));
    status
}

/// The kind that a status names.
pub(super) fn kind(status: &Status) -> Option<Kind> {
    kind_of(status.metadata().get(KIND_HEADER)?.to_str().ok()?)
}

/// The kind of this name.
pub(super) fn kind_of(named: &str) -> Option<Kind> {
    KINDS.iter().map(|(kind, _)| *kind).find(|kind| kind.as_str() == named)
}

/// The error of a call that ended with this status; `place` is what it was about.
#[cold]
pub(super) fn error(status: &Status, what: &str, place: &str) -> Error {
    let (text, code) = (status.message(), status.code());
    if let Some(kind) = kind(status) {
        let error = Error::new(kind, format!("cannot {what} {place}: the server answers: {text}"));
        // Its device is full, or it has as many objects as it takes.
        return if kind == Kind::Full { error.of_space() } else { error };
    }
    // A gateway refused it, or a server of something else: the call never began.
    let (kind, remedy) = match code {
        Code::Unauthenticated | Code::PermissionDenied => (Kind::Invalid, "; check the token"),
        Code::Unimplemented => (Kind::Invalid, "; this address is not a storage service of Terrane"),
        _ => (Kind::Io, ""),
    };
    let mut causes = String::new();
    let mut source = status.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !causes.contains(&cause_text) && !text.contains(&cause_text) {
            causes = format!("{causes}: {cause_text}");
        }
        source = cause.source();
    }
    Error::new(kind, format!("cannot {what} {place}: {code:?}: {text}{causes}{remedy}"))
}

/// A header as text.
pub(super) fn header<'m>(headers: &'m MetadataMap, name: &str) -> Option<&'m str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A `traceparent` of version 00, if it is one.
pub(super) fn trace(headers: &MetadataMap) -> Option<String> {
    header(headers, TRACE_HEADER).filter(|text| is_trace(text)).map(str::to_owned)
}

/// Says whether a text is a `traceparent` of version 00.
pub(super) fn is_trace(text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = text.split('-');
    let lens = [2, 32, 16, 2];
    text.starts_with("00-")
        && lens.iter().all(|len| parts.next().is_some_and(|part| part.len() == *len && is_hex(part)))
        && parts.next().is_none()
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes cut into pieces of at most `max` bytes. No piece is empty.
pub(super) fn pieces(bytes: Bytes, max: usize) -> impl Iterator<Item = Bytes> + Send {
    let len = bytes.len();
    (0..len).step_by(max).map(move |start| bytes.slice(start..len.min(start + max)))
}

/// The part with these bytes, of an answer of `bytes_all`.
pub(super) fn read_part(data: Bytes, bytes_all: u64) -> ReadPart {
    debug_assert!(data.len() <= PART_BYTES_MAX, "it fits into a message");
    ReadPart { bytes_all, crc32c: crc32c::crc32c(&data), data }
}

/// Checks the bytes of a part.
pub(super) fn check_part(part: &ReadPart) -> Result<(), Status> {
    if crc32c::crc32c(&part.data) == part.crc32c {
        return Ok(());
    }
    Err(Status::aborted(
        "the checksum of an answer is wrong: its bytes were changed between server and client",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_a_bucket_comes_back() {
        for (kind, _) in KINDS {
            let found = error(&status(&Error::new(kind, "why")), "read", "grpc://a/b");
            assert_eq!(found.kind(), kind);
            assert!(found.to_string().contains("grpc://a/b") && found.to_string().contains("why"), "{found}");
        }
        let poisoned = status(&Error::new(Kind::Poisoned, "why"));
        assert_eq!(error(&poisoned, "create", "x").kind(), Kind::Io, "what happened is unknown");
    }

    #[test]
    fn a_status_without_a_kind_says_nothing_about_what_happened() {
        for code in (0..=16).map(Code::from) {
            let known = [Code::Unauthenticated, Code::PermissionDenied, Code::Unimplemented].contains(&code);
            let expected = if known { Kind::Invalid } else { Kind::Io };
            assert_eq!(error(&Status::new(code, "x"), "create", "x").kind(), expected, "{code:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let found = refusal(Code::NotFound, Kind::NotFound, "ä".repeat(TEXT_BYTES_MAX));
        assert_eq!(found.message().len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn only_a_traceparent_is_one() {
        let whole = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
        assert!(is_trace(whole));
        for wrong in [
            "",
            "00",
            &whole[1..],
            &whole.replace('a', "A"),
            &format!("{whole}-00"),
            &whole.replace("00-", "01-"),
        ] {
            assert!(!is_trace(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn pieces_are_the_whole() {
        let bytes = Bytes::from_iter(0..=255);
        for max in [1, 3, 255, 256, 1000] {
            let pieces: Vec<Bytes> = pieces(bytes.clone(), max).collect();
            assert_eq!(pieces.concat(), bytes);
            assert!(pieces.iter().all(|piece| (1..=max).contains(&piece.len())));
        }
        assert_eq!(super::pieces(Bytes::new(), 4).count(), 0);
    }
}

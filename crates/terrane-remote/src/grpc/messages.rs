//! Messages, client and server of `proto/storage.proto`, as `cargo xtask proto` wrote them.
#![expect(unreachable_pub, reason = "generated")]

include!(concat!(env!("CARGO_MANIFEST_DIR"), "/proto/storage.rs.in"));

#[cfg(test)]
mod tests {
    #[test]
    fn the_code_is_that_of_the_protocol() {
        let protocol = include_bytes!("../../proto/storage.proto");
        let code = include_str!("../../proto/storage.rs.in");
        let head = format!("// CRC32C of the protocol: {:08x}.\n", crc32c::crc32c(protocol));
        assert!(code.starts_with(&head), "the protocol was changed: run `cargo xtask proto`");
    }
}

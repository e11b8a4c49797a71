//! The C header.

use std::fmt::Write as _;

use super::table::Abi;

/// Its path.
pub const PATH: &str = "crates/terrane-rocksdb/include/rocksdb/c.h";

/// The header as the table says.
#[must_use]
pub fn text(abi: &Abi) -> String {
    let mut text = format!(
        "/* The C interface of RocksDB {}, as exported by Terrane's librocksdb.\n   Written by `cargo xtask abi --write` \
         from abi.toml; do not edit. What each function does: docs/rocksdb-c-api.md. */\n\
         #ifndef TERRANE_ROCKSDB_C_H\n#define TERRANE_ROCKSDB_C_H\n\n\
         #include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n\
         #ifndef ROCKSDB_LIBRARY_API\n#define ROCKSDB_LIBRARY_API\n#endif\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
        abi.version
    );
    for name in &abi.opaque {
        let _ = writeln!(text, "typedef struct {name} {name};");
    }
    for (name, of) in &abi.type_names {
        let _ = writeln!(text, "typedef {of} {name};");
    }
    text.push_str(
        "\ntypedef struct rocksdb_slice_t {\n  const char* data;\n  size_t size;\n} rocksdb_slice_t;\n\n",
    );
    for (name, c) in &abi.callbacks {
        let _ = writeln!(text, "typedef {};", c.replacen("(*)", &format!("(*{name})"), 1));
    }
    text.push_str("\nenum {\n");
    for (name, value) in &abi.constants {
        let _ = writeln!(text, "  {name} = {value},");
    }
    text.push_str("};\n");
    for area in &abi.areas {
        let _ = write!(text, "\n/* {} */\n\n", area.name);
        for function in &area.functions {
            let arguments = match function.arguments.as_slice() {
                [] => "void".to_owned(),
                arguments => arguments.join(", "),
            };
            let _ = writeln!(text, "{} {}({arguments});", function.result, function.name);
        }
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

//! Writes the Rust code of a protocol: `terrane-proto PROTO OUT`. `cargo xtask proto` runs it.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(proto), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("usage: terrane-proto PROTO OUT".into());
    };
    let (proto, out) = (Path::new(&proto), Path::new(&out));
    let folder = proto.parent().ok_or("the protocol lies in a folder")?;
    let files = protox::compile([proto], [folder])?;
    let folder = std::env::temp_dir().join(format!("terrane-proto-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    tonic_prost_build::configure().bytes(".").out_dir(&folder).compile_fds(files)?;
    let text = whole(&folder)?;
    std::fs::remove_dir_all(&folder)?;
    // A test of the crate compares the number: a protocol without its code is found without this program.
    let head = format!("// CRC32C of the protocol: {:08x}.\n", crc32c::crc32c(&std::fs::read(proto)?));
    std::fs::write(out, head + &text)?;
    Ok(())
}

/// The text of the only file in `folder`.
fn whole(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut files = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let file = files.pop().filter(|_| files.is_empty()).ok_or("the protocol has one package")?;
    Ok(std::fs::read_to_string(file.path())?)
}

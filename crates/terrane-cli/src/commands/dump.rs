//! `dump`: any stored file as annotated hexadecimal: where, which bytes, what they mean.
//!
//! The first bytes tell a manifest or a segment; a file of extents has no header, so extents are found by their
//! footers, which end at multiples of 4096.

use std::io::{Read, Seek, SeekFrom, Write};

use terrane_format::dump::Field;
use terrane_format::extent::{ALIGN_BYTES, FOOTER_BYTES, Footer};
use terrane_format::{extent, manifest, segment};

use crate::arguments::Dump;
use crate::exit::{Code, Failure};
use crate::files;

/// Bytes of a part that are shown.
const HEX_BYTES: usize = 16;
/// Longest file that is read as a whole; only files of extents are longer.
const WHOLE_BYTES_MAX: u64 = 1 << 31;

pub(super) fn run(command: &Dump, out: &mut dyn Write) -> Result<(), Failure> {
    let name = command.file.display().to_string();
    let failed = |error: std::io::Error| Failure::file(&name, &error);
    let mut file = files::open(&command.file).map_err(failed)?.file;
    let mut head = Vec::new();
    (&mut file).take(8).read_to_end(&mut head).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut printer = Printer { out, from: command.from, left: command.limit.unwrap_or(u64::MAX) };
    if head == manifest::file::MAGIC || head == segment::MAGIC {
        let mut bytes = Vec::new();
        file.take(WHOLE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        return if head == segment::MAGIC { printer.segment(&bytes) } else { printer.manifest(&bytes) };
    }
    let extents = find_extents(&mut file).map_err(failed)?;
    if extents.is_empty() && head.iter().all(|&byte| byte == 0) {
        writeln!(
            printer.out,
            "no header and no extent: an empty file, or a spare one that waits for its use"
        )?;
        return Ok(());
    }
    if extents.is_empty() {
        return Err(not_ours(&name));
    }
    writeln!(printer.out, "data file: the manifest says which of these extents count")?;
    for (start, len) in extents {
        let mut bytes = vec![0; len];
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        writeln!(printer.out, "extent of {len} bytes at {start}")?;
        printer.fields(&bytes, start, &extent::describe(&bytes))?;
    }
    Ok(())
}

fn not_ours(name: &str) -> Failure {
    Failure::new(Code::Usage, format!("{name} is no manifest, segment or data file of a database"))
}

/// Start and length of every extent whose footer is sound, by start.
fn find_extents(file: &mut (impl Read + Seek)) -> std::io::Result<Vec<(u64, usize)>> {
    let len = file.seek(SeekFrom::End(0))?;
    let mut extents = Vec::new();
    let mut footer = [0; FOOTER_BYTES];
    let mut end = ALIGN_BYTES as u64;
    while end <= len {
        file.seek(SeekFrom::Start(end - FOOTER_BYTES as u64))?;
        file.read_exact(&mut footer)?;
        if let Ok(footer) = Footer::decode(&footer)
            && let Some(start) = end.checked_sub(u64::from(footer.bytes))
            && start.is_multiple_of(ALIGN_BYTES as u64)
        {
            extents.push((start, footer.bytes as usize));
        }
        end += ALIGN_BYTES as u64;
    }
    extents.sort_unstable();
    Ok(extents)
}

struct Printer<'o> {
    out: &'o mut dyn Write,
    /// First byte of the file that is shown.
    from: u64,
    /// Parts that may still be shown.
    left: u64,
}

impl Printer<'_> {
    fn manifest(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        writeln!(self.out, "manifest file of {} bytes", bytes.len())?;
        self.fields(bytes, 0, &manifest::describe(bytes))
    }

    fn segment(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        writeln!(self.out, "segment file of {} bytes", bytes.len())?;
        let mut written = Ok(());
        let described = segment::describe(bytes, &mut |range, meaning| {
            if written.is_ok() {
                written = self.line(bytes, 0, range.start, range.len(), &meaning);
            }
        });
        written?;
        if let Err(error) = described {
            self.line(bytes, 0, 0, 0, &format!("broken = {error}"))?;
        }
        Ok(())
    }

    fn fields(&mut self, bytes: &[u8], base: u64, fields: &[Field]) -> Result<(), Failure> {
        let mut fields: Vec<&Field> = fields.iter().collect();
        fields.sort_by_key(|field| field.offset);
        for field in fields {
            self.line(bytes, base, field.offset, field.len, &format!("{} = {}", field.name, field.value))?;
        }
        Ok(())
    }

    /// `start-end: hex # meaning`, positions counted from the start of the file, the end not included.
    fn line(
        &mut self,
        bytes: &[u8],
        base: u64,
        offset: usize,
        len: usize,
        meaning: &str,
    ) -> Result<(), Failure> {
        let start = base + offset as u64;
        if start < self.from || self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        let shown = bytes.get(offset..).unwrap_or_default();
        let shown = &shown[..shown.len().min(len).min(HEX_BYTES)];
        let mut hex = String::new();
        crate::text::hex(shown, &mut hex);
        if len > HEX_BYTES {
            hex.push_str("..");
        }
        writeln!(self.out, "{start:>10}-{:<10} {hex:<34} # {meaning}", start + len as u64)?;
        Ok(())
    }
}

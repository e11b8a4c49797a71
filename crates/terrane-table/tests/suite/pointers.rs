//! Extents of pointers to values, and the values that they lead to.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use terrane_base::{Entry, RecordKind, SeqKind, SeqNo, ValuePointer, ValuePosition, ValueTableId};
use terrane_format::block::INTERVALS_MAX;
use terrane_format::extent::{Form, ValueSection, check};
use terrane_storage::SLOT_BYTES;
use terrane_table::{ExtentWriter, WriterSettings};

fn writer() -> ExtentWriter {
    ExtentWriter::new(WriterSettings { may_point: true, ..WriterSettings::default() }).unwrap()
}

fn add_pointer(writer: &mut ExtentWriter, number: u32) {
    let position = Some(ValuePosition { block: number / 14, entry: number % 14 });
    let mut bytes = Vec::new();
    ValuePointer { table: ValueTableId(9), len: 1000, position }.encode(&mut bytes);
    let seq_kind = SeqKind::new(SeqNo(u64::from(number) * 7919 % 1_000_003), RecordKind::Pointer);
    writer.add(Entry { key: format!("{number:016}").as_bytes(), seq_kind, value: &bytes }).unwrap();
}

#[test]
fn a_block_has_as_many_pointers_as_intervals() {
    let mut writer = writer();
    let count = 10 * INTERVALS_MAX as u32 + 5;
    (0..count).for_each(|number| add_pointer(&mut writer, number));
    let (bytes, meta) = writer.finish_bytes().unwrap();
    assert_eq!((meta.blocks, meta.entries), (11, u64::from(count)));
    let form = Form::of_version(meta.format_version).unwrap();
    assert!(form.points && form.has_positions, "{form:?}");
    assert_eq!(check::inspect(&bytes, meta.id, meta.slots).unwrap(), meta);
}

#[test]
fn pointers_fill_exactly_one_slot() {
    let mut writer = writer();
    let mut number = 0;
    while writer.fits(16, 10) {
        add_pointer(&mut writer, number);
        number += 1;
    }
    let (_, meta) = writer.finish_bytes().unwrap();
    assert_eq!(meta.slots, 1, "{number} pointers take {} bytes", meta.bytes);
    assert!(meta.bytes as usize > SLOT_BYTES / 10 * 9, "{number} pointers take {} bytes", meta.bytes);
}

/// The position that the writer tells is that of the block in the index, and of the entry in the block.
#[test]
fn the_writer_tells_where_a_value_lies() {
    let mut writer = ExtentWriter::new(WriterSettings::default()).unwrap();
    writer.set_value_table(ValueSection { number: ValueTableId(9), level: 1 });
    let mut positions = Vec::new();
    for number in 0..100u64 {
        let (key, value) = (format!("{number:08}"), vec![number as u8; 500 + number as usize * 40]);
        let seq_kind = SeqKind::new(SeqNo(number), RecordKind::Put);
        writer.add(Entry { key: key.as_bytes(), seq_kind, value: &value }).unwrap();
        positions.push((writer.position(), key));
    }
    let (bytes, meta) = writer.finish_bytes().unwrap();
    let index = &bytes[meta.index.offset as usize..meta.index.end() as usize];
    let index = terrane_format::index::IndexBlock::decode(index.to_vec()).unwrap();
    let mut lies = Vec::new();
    for (at, row) in index.rows().enumerate() {
        let stored = bytes[row.offset as usize..][..row.stored_len as usize].to_vec();
        let block = row.open_block(stored).unwrap();
        let mut cursor = terrane_format::block::BlockCursor::new();
        cursor.seek_first(&block);
        let mut entry = 0;
        while let Some(found) = cursor.entry(&block) {
            let position = ValuePosition { block: at as u32, entry };
            lies.push((position, String::from_utf8(found.key.to_vec()).unwrap()));
            (entry, _) = (entry + 1, cursor.next(&block));
        }
    }
    assert!(meta.blocks > 5, "{} blocks", meta.blocks);
    assert_eq!(positions, lies);
}

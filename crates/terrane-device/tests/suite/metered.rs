//! The meter counts the calls and bytes of the files opened through it, and of nothing else.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use terrane_device::{Disk, FileRead, Flow, FlowCounts, MemDisk, MeteredDisk, OpenMode};

#[test]
fn files_and_directories_count_in_the_flow_of_their_meter() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let (first, second): (Arc<Flow>, Arc<Flow>) = (Arc::default(), Arc::default());
    let writer = MeteredDisk::new(disk.clone(), first.clone());
    let reader = MeteredDisk::new(disk, second.clone());
    let path = Path::new("/file");
    let file = writer.open(path, OpenMode::Create, false).unwrap();
    file.write_at(0, &[1; 300]).unwrap();
    file.write_at(300, &[2; 20]).unwrap();
    file.sync().unwrap();
    writer.sync_dir(Path::new("/")).unwrap();
    let written = FlowCounts { writes: 2, bytes_written: 320, syncs: 2, ..FlowCounts::default() };
    assert_eq!(first.counts(), written);

    let file = reader.open(path, OpenMode::Read, false).unwrap();
    let mut bytes = [0; 20];
    file.read_at(300, &mut bytes).unwrap();
    assert_eq!(bytes, [2; 20]);
    file.read_at(1000, &mut bytes).unwrap_err();
    let read = FlowCounts { reads: 2, bytes_read: 20, ..FlowCounts::default() };
    assert_eq!(second.counts(), read, "a failed read counts, its bytes do not");
    // Calls that other wrappers pass on are not counted.
    assert_eq!(file.len().unwrap(), 320);
    assert!(reader.exists(path).unwrap());
    assert_eq!((first.counts(), second.counts()), (written, read));

    let mut more = [0; 40];
    let mut reads = [FileRead::new(&*file, 0, &mut bytes), FileRead::new(&*file, 290, &mut more)];
    reader.read_batch(&mut reads);
    assert!(reads[0].result.is_ok() && reads[1].result.is_err());
    assert_eq!(second.counts(), FlowCounts { reads: 4, bytes_read: 40, batches: 1, ..FlowCounts::default() });
}

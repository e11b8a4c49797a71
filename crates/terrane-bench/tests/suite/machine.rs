//! Texts of the kernel about the machine: mounts, choices, names; and counters that take turns.

use std::path::Path;

use terrane_bench::measure::hardware::scaled;
use terrane_bench::measure::machine::{chosen, cpu_name};
use terrane_bench::measure::mount::Mount;

const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
28 27 254:1 / /data\\040set rw,noatime - xfs /dev/vdb1 rw,attr2
29 27 0:24 / /data rw - tmpfs tmpfs rw,size=1k
30 27 0:25 / /data rw - tmpfs second rw,size=2k
broken line";

#[test]
fn the_longest_and_latest_mount_wins() {
    let find = |path: &str| Mount::find(MOUNTS, Path::new(path)).map(|mount| mount.source);
    assert_eq!(find("/srv/x").as_deref(), Some("/dev/vda"));
    assert_eq!(find("/data set/x").as_deref(), Some("/dev/vdb1"));
    assert_eq!(find("/data/x").as_deref(), Some("second"));
    assert_eq!(find("/database").as_deref(), Some("/dev/vda"), "a prefix of a name is not a parent");
}

#[test]
fn options_are_shown_once() {
    let mount = Mount::find(MOUNTS, Path::new("/")).expect("the root is mounted");
    assert_eq!(mount.file_system(), "ext4 (rw,relatime,discard)");
}

#[test]
fn escapes_and_choices_are_read() {
    let line = "27 1 254:0 / / rw - ext4 a\\040b\\134c\\x rw";
    let mount = Mount::find(line, Path::new("/")).expect("the root is mounted");
    assert_eq!(mount.source, "a b\\c\\x");
    assert_eq!(chosen("always [madvise] never"), "madvise");
    assert_eq!(chosen(""), "");
    assert_eq!(cpu_name("CPU implementer : 0x41\nCPU part : 0xd0c"), "implementer 0x41 part 0xd0c");
}

#[test]
fn a_count_is_scaled_by_the_share_of_time_that_it_ran() {
    assert_eq!(scaled(100, 10, 10), Some(100));
    assert_eq!(scaled(100, 0, 0), Some(100), "a thread that never ran has nothing to scale");
    assert_eq!(scaled(100, 10, 5), Some(200));
    assert_eq!(scaled(0, 10, 0), None, "never on the processor: not known");
    assert_eq!(scaled(u64::MAX, 10, 5), None);
}

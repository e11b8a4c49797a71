//! Merges on a device that is nearly full.

use crate::support;

use support::{Row, World};
use terrane_format::manifest::Place;

const ROWS: u64 = 6000;
const KIB: u64 = 1 << 10;

fn key(number: u64) -> String {
    format!("key-{number:06}")
}

/// Level 1 with rows of 100 bytes, and a run that deletes every second one of them.
fn half_deleted(room_bytes: u64) -> World {
    let mut world = World::new();
    world.room_bytes = room_bytes;
    let rows: Vec<Row> = (0..ROWS).map(|number| Row::put(key(number), number + 1, vec![7; 100])).collect();
    world.load(Place::Level(1), &rows);
    let delete = |number: u64| Row::delete(key(number), ROWS + number + 1);
    let deletes: Vec<Row> = (0..ROWS).step_by(2).map(delete).collect();
    world.remember(&deletes);
    world.dump(&deletes);
    world
}

#[test]
fn extents_are_short_where_the_device_has_little_room() {
    let longest = |room_bytes: u64| {
        let world = half_deleted(room_bytes);
        let level = world.metasnapshot.level(Place::Level(1)).unwrap();
        level.iter().map(|extent| u64::from(extent.meta.bytes)).max().unwrap()
    };
    assert!(longest(u64::MAX) > 500 * KIB);
    assert!(longest(0) <= 64 * KIB, "{} bytes", longest(0));
    assert!((200 * KIB..=256 * KIB).contains(&longest(4096 * KIB)), "{} bytes", longest(4096 * KIB));
}

/// All of the output would take three times the room that there is.
#[test]
fn a_merge_publishes_parts_that_have_room_and_takes_the_room_that_they_free() {
    let mut world = half_deleted(0);
    world.disk.set_capacity(world.disk.used_bytes() + 112 * KIB);
    let spec = world.pick().unwrap();
    world.run(&spec);
    assert!(world.parts > 4, "{} parts", world.parts);
    assert!(world.pick().is_none());
    world.check_content();
}

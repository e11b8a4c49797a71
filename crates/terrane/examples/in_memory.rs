//! A database in memory: what a test wants, without a file.

use terrane::{Db, Durability, Kind, MemoryDevice, Options, Result, TableOptions};

pub(crate) fn main() -> Result<()> {
    // For a test of an application: everything works, nothing stays.
    let db = Db::open_in_memory()?;
    let users = db.create_table("users", &TableOptions::new().merge_operator("counter"))?;
    let mut batch = terrane::Batch::new();
    batch.put(db.default_table(), "k", "v")?;
    batch.merge(&users, "visits", terrane::counter::encode(1))?;
    db.write(&batch, Durability::Synced)?;
    assert_eq!(users.iter().count(), 1);
    drop(db);

    // For a test of what an application does when it comes back, or runs out of room: a device that stays.
    let device = MemoryDevice::new(32 << 20);
    let db = device.open("/data", &Options::in_memory())?;
    db.put("k", "v")?;
    assert_eq!(device.open("/data", &Options::in_memory()).expect_err("it is open").kind(), Kind::Busy);
    db.close()?;
    let db = device.open("/data", &Options::in_memory())?;
    assert_eq!(db.get("k")?.as_deref(), Some(&b"v"[..]));
    let full = (0..64u64).find_map(|number| {
        let value: Vec<u8> = (0..1u64 << 17)
            .flat_map(|at| (at ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
            .collect();
        db.put(number.to_be_bytes(), &value).err()
    });
    println!("{}", full.expect("64 MiB do not fit into 32"));
    assert_eq!(db.get("k")?.as_deref(), Some(&b"v"[..]), "rows that are there can be read");
    Ok(())
}

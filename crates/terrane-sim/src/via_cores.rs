//! The same writes and reads through per-core ownership: every table belongs to one of two cores, only the
//! caller serves them, and the cores are closed when the answer has arrived.

use terrane::cores::{Answer, Cores};
use terrane::{Batch, Durability, Table};

use crate::model::Change;
use crate::op::Op;
use crate::run::Runner;

impl Runner {
    /// Does `op` through cores.
    pub(crate) fn go_through_cores(&self, op: &Op) {
        self.is_through.set(true);
        self.use_database(op);
        self.is_through.set(false);
    }

    fn cores(&self) -> terrane::Result<Cores> {
        let db = self.db();
        let tables = db.tables().iter().map(|name| db.table(name)).collect::<terrane::Result<Vec<_>>>()?;
        tables
            .iter()
            .fold(Cores::builder(&db).cores(2).slots(16), |builder, table| builder.table(table))
            .build()
    }

    /// Writes changes, as one batch if there are several.
    pub(crate) fn write_through(&self, changes: &[Change], sync: bool) -> terrane::Result<()> {
        let (db, cores) = (self.db(), self.cores()?);
        let mut session = cores.session()?;
        let sync = if sync { Durability::Synced } else { Durability::Buffered };
        if let [(name, key, value)] = changes {
            let table = db.table(name)?;
            match value {
                Some(value) => session.put(&table, key, value, sync)?,
                None => session.delete(&table, key, sync)?,
            };
        } else {
            let mut batch = Batch::new();
            let mut owners = Vec::new();
            for (name, key, value) in changes {
                let table = db.table(name)?;
                owners.push(cores.core_of(&table, key)?);
                match value {
                    Some(value) => batch.put(&table, key, value)?,
                    None => batch.delete(&table, key)?,
                }
            }
            if owners.iter().any(|owner| *owner != owners[0]) {
                return session.write_across(&batch, sync).map(drop);
            }
            session.write(&batch, sync)?;
        }
        let mut written = Ok(());
        session.finish(&mut |_, answer| written = answer.map(drop));
        written
    }

    /// Writes a batch that may be of several cores.
    pub(crate) fn write_batch_through(&self, batch: &Batch) -> terrane::Result<()> {
        self.cores()?.session()?.write_across(batch, Durability::Buffered).map(drop)
    }

    /// The values of keys, of one moment.
    pub(crate) fn read_through(
        &self,
        table: &Table,
        keys: &[&[u8]],
    ) -> terrane::Result<Vec<Option<Vec<u8>>>> {
        let cores = self.cores()?;
        let mut session = cores.session()?;
        match keys {
            [key] => session.get(table, key)?,
            keys => session.multi_get(table, keys)?,
        };
        let mut found = Ok(Vec::new());
        session.finish(&mut |_, answer| {
            found = answer.map(|answer| match answer {
                Answer::Value(value) => vec![value.map(<[u8]>::to_vec)],
                Answer::Values(values) => values.iter().map(|value| value.map(<[u8]>::to_vec)).collect(),
                answer => panic!("{answer:?} to a read"),
            });
        });
        found
    }
}

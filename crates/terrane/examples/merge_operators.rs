//! Merges: the built-in counter, and an operator of the program that keeps the three best scores of a player.

use std::sync::Arc;

use terrane::{Db, MergeOperator, MergeOperators, Options, Result, TableOptions, counter};

/// Values and operands: scores as 4 bytes each, big-endian, the best first.
#[derive(Debug)]
struct Best;

impl MergeOperator for Best {
    fn name(&self) -> &str {
        "example.best-three"
    }

    fn full(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
        let parts = base.iter().chain(operands);
        let mut scores: Vec<[u8; 4]> = parts.flat_map(|part| part.as_chunks().0.iter().copied()).collect();
        scores.sort_unstable_by(|a, b| b.cmp(a));
        scores.iter().take(3).for_each(|score| out.extend_from_slice(score));
        Ok(())
    }

    /// Of several operands, too, only the best count: flush and compaction may keep one in their place.
    fn partial(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> Result<bool> {
        self.full(key, None, operands, out).map(|()| true)
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let operators = MergeOperators::new().with(Arc::new(Best))?;
    let db = Db::open_with_operators(dir.path().join("data"), &Options::default(), operators)?;

    // A write that reads nothing: each merge is one record.
    let visits = db.create_table("visits", &TableOptions::new().merge_operator("counter"))?;
    for page in ["/", "/about", "/", "/"] {
        visits.merge(page.as_bytes(), counter::encode(1))?;
    }
    let value = visits.get("/")?.expect("it was visited");
    println!("/ was visited {} times", counter::decode(&value)?);
    assert_eq!(counter::decode(&value)?, 3);

    let best = db.create_table("best", &TableOptions::new().merge_operator("example.best-three"))?;
    for score in [70u32, 20, 95, 60, 88] {
        best.merge("ada", score.to_be_bytes())?;
    }
    db.flush()?; // folds the five into one
    let value = best.get("ada")?.expect("she has played");
    let scores: Vec<u32> = value.as_chunks().0.iter().map(|score| u32::from_be_bytes(*score)).collect();
    println!("the best scores of ada: {scores:?}");
    assert_eq!(scores, [95, 88, 70]);

    // A table without an operator refuses merges.
    assert!(db.default_table().merge("k", "v").is_err());
    db.close()
}

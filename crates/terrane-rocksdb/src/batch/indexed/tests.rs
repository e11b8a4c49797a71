use super::*;

/// A change of the model, with its own bytes.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    Merge(u8, u8),
    Delete(u8),
    Range(u8, u8),
}

/// The value of a key after these steps over a value: operands are appended.
fn replayed(steps: &[(u32, Step)], family: u32, key: u8, below: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut value = below;
    for (of, step) in steps.iter().filter(|(of, _)| *of == family).cloned() {
        assert_eq!(of, family);
        match step {
            Step::Put(at, byte) if at == key => value = Some(vec![byte]),
            Step::Merge(at, byte) if at == key => value.get_or_insert_default().push(byte),
            Step::Delete(at) if at == key => value = None,
            Step::Range(start, end) if (start..end).contains(&key) => value = None,
            _ => {}
        }
    }
    value
}

fn read(batch: &Indexed, family: u32, key: u8, below: Option<Vec<u8>>) -> Option<Vec<u8>> {
    match batch.own(family, &[key]) {
        Own::Nothing => below,
        Own::Deleted => None,
        Own::Value(value) => Some(value),
        Own::Open(operands) => Some([below.unwrap_or_default(), operands.concat()].concat()),
        Own::Closed(base, operands) => Some([base.unwrap_or_default(), operands.concat()].concat()),
    }
}

fn add(batch: &mut Indexed, family: u32, step: &Step) {
    let added = match *step {
        Step::Put(key, byte) => batch.add(family, Change::Put(&[key], &[byte])),
        Step::Merge(key, byte) => batch.add(family, Change::Merge(&[key], &[byte])),
        Step::Delete(key) if key % 2 == 0 => batch.add(family, Change::SingleDelete(&[key])),
        Step::Delete(key) => batch.add(family, Change::Delete(&[key])),
        Step::Range(start, end) => batch.add(family, Change::RangeDelete(&[start], &[end])),
    };
    assert!(added);
}

/// Random steps, save points and ways back: each key reads as if the steps that are left were replayed, and
/// exactly the keys that they name are found from both ends.
#[test]
fn a_batch_reads_as_its_records_replayed() {
    let mut rng = terrane_base::Rng::new(7);
    let mut below = |bound: u64| rng.below(bound);
    for _ in 0..400 {
        let shared = SharedBatch::new(0);
        let mut batch = shared.get();
        let (mut steps, mut points): (Vec<(u32, Step)>, Vec<usize>) = (Vec::new(), Vec::new());
        for _ in 0..40 {
            let (family, key, byte) = (below(2) as u32, below(8) as u8, below(200) as u8);
            let step = match below(12) {
                0..4 => Step::Put(key, byte),
                4..7 => Step::Merge(key, byte),
                7..9 => Step::Delete(key),
                9 => Step::Range(key, below(10) as u8),
                10 => {
                    points.push(steps.len());
                    batch.set_save_point();
                    continue;
                }
                _ => {
                    let point = points.pop();
                    assert_eq!(batch.roll_back_to_save_point().is_ok(), point.is_some());
                    steps.truncate(point.unwrap_or(steps.len()));
                    continue;
                }
            };
            add(&mut batch, family, &step);
            steps.push((family, step));
            check(&batch, &steps);
        }
        check(&batch, &steps);
    }
}

fn check(batch: &Indexed, steps: &[(u32, Step)]) {
    assert_eq!(batch.batch.count() as usize, steps.len());
    for family in 0..2 {
        for key in 0..8 {
            for below in [None, Some(vec![255])] {
                let wanted = replayed(steps, family, key, below.clone());
                assert_eq!(read(batch, family, key, below), wanted, "{steps:?} {family} {key}");
            }
        }
        let named = |key: u8| {
            let mut of_family = steps.iter().filter(|(of, _)| *of == family);
            of_family.any(|(_, step)| match step {
                Step::Put(at, _) | Step::Merge(at, _) | Step::Delete(at) => *at == key,
                Step::Range(..) => false,
            })
        };
        let keys: Vec<Vec<u8>> = (0..8).filter(|key| named(*key)).map(|key| vec![key]).collect();
        let mut found = Vec::new();
        let mut next = batch.first(family, Bound::Unbounded, Bound::Unbounded);
        while let Some(key) = next {
            next = batch.first(family, Bound::Excluded(&key), Bound::Unbounded);
            found.push(key);
        }
        assert_eq!(found, keys);
        let last = batch.last(family, Bound::Included(&[2]), Bound::Excluded(&[6]));
        assert_eq!(last, keys.iter().rfind(|key| (2..6).contains(&key[0])).cloned());
    }
}

#[test]
fn a_record_without_room_is_not_there() {
    let shared = SharedBatch::new(30);
    let mut batch = shared.get();
    assert!(batch.add(0, Change::Put(b"a", b"1")));
    assert!(!batch.add(0, Change::Put(b"b", &[7; 40])));
    assert_eq!(batch.own(0, b"b"), Own::Nothing);
    assert_eq!(batch.own(0, b"a"), Own::Value(b"1".to_vec()));
}

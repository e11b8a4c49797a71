//! The space manager against a plain set of slots: no overlap, nothing lost, lowest first.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the test")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use terrane_base::{ExtentId, Kind};
use terrane_storage::space::{Reclaim, Reserve, Run, Space};
use terrane_storage::{EXTENT_SLOTS_MAX, SLOT_BYTES};

#[derive(Clone, Debug)]
enum Step {
    Take {
        slots: u32,
        space_fails: bool,
    },
    TakeHeld(u32),
    Free(prop::sample::Index),
    FreeMany(u8),
    Reclaim {
        works: bool,
        all: bool,
    },
    /// The extent is written, and its last slot is filled to this many thousandths.
    Write(prop::sample::Index, u64),
    CutLooseEnds,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let slots = prop_oneof![6 => Just(1u32), 3 => 2u32..40, 1 => 40u32..=EXTENT_SLOTS_MAX];
    prop_oneof![
        8 => (slots.clone(), prop::bool::weighted(0.1))
            .prop_map(|(slots, space_fails)| Step::Take { slots, space_fails }),
        1 => slots.prop_map(Step::TakeHeld),
        4 => any::<prop::sample::Index>().prop_map(Step::Free),
        1 => any::<u8>().prop_map(Step::FreeMany),
        2 => (prop::bool::weighted(0.8), any::<bool>()).prop_map(|(works, all)| Step::Reclaim { works, all }),
        3 => (any::<prop::sample::Index>(), 1u64..=1000).prop_map(|(index, part)| Step::Write(index, part)),
        1 => Just(Step::CutLooseEnds),
        1 => Just(Step::Restart),
    ]
}

#[derive(Default)]
struct Model {
    /// Slots in each file.
    lens: BTreeMap<u32, u32>,
    extents: Vec<(ExtentId, u32)>,
    taken: BTreeSet<(u32, u32)>,
    /// Slots that have real space on the device.
    real: BTreeSet<(u32, u32)>,
}

impl Model {
    fn lowest_run(&self, slots: u32, usable: impl Fn(u32, u32) -> bool) -> Option<ExtentId> {
        self.lens.iter().find_map(|(&file, &len)| {
            let mut run = 0;
            (0..len).find_map(|slot| {
                run = if !self.taken.contains(&(file, slot)) && usable(file, slot) { run + 1 } else { 0 };
                (run == slots).then(|| ExtentId { file, slot: slot + 1 - slots })
            })
        })
    }

    fn take(&mut self, id: ExtentId, slots: u32) {
        for slot in id.slot..id.slot + slots {
            assert!(slot < self.lens[&id.file], "{id} of {slots} slots is outside its file");
            assert!(self.taken.insert((id.file, slot)), "{id} of {slots} slots overlaps another extent");
        }
        self.extents.push((id, slots));
    }

    fn free(&mut self, index: usize) -> (ExtentId, u32) {
        let (id, slots) = self.extents.swap_remove(index);
        for slot in id.slot..id.slot + slots {
            assert!(self.taken.remove(&(id.file, slot)));
        }
        (id, slots)
    }

    fn check(&self, space: &Space) {
        let counts = space.counts();
        assert_eq!(counts.total, self.lens.values().map(|&len| u64::from(len)).sum::<u64>());
        assert_eq!(counts.taken, self.taken.len() as u64);
        assert_eq!(counts.files as usize, self.lens.len());
        assert!(counts.taken + counts.holes <= counts.total);
    }
}

/// Takes a run; grows the files as planned until there is one.
fn take(space: &mut Space, model: &mut Model, slots: u32, space_fails: bool) {
    let expected = model.lowest_run(slots, |_, _| true);
    let mut found = space.take(slots);
    assert_eq!(found.as_ref().map(|(id, _)| *id), expected, "the lowest run of {slots}");
    if found.is_none() {
        let plan = space.plan_growth(slots);
        assert_eq!(plan.from, model.lens.get(&plan.file).copied().unwrap_or(0));
        assert!(
            plan.from < plan.at_least && plan.at_least <= plan.to && plan.to <= EXTENT_SLOTS_MAX,
            "{plan:?}"
        );
        let len = if space_fails { plan.at_least } else { plan.to };
        space.grown(plan.file, len);
        model.lens.insert(plan.file, len);
        model.real.extend((plan.from..len).map(|slot| (plan.file, slot)));
        found = space.take(slots);
    }
    let (id, lacking) = found.expect("the growth was enough");
    if space_fails && !lacking.is_empty() {
        space.untake(id, slots);
        return;
    }
    model.take(id, slots);
    for slot in lacking.into_iter().flatten() {
        model.real.insert((id.file, slot));
    }
    for slot in id.slot..id.slot + slots {
        assert!(model.real.contains(&(id.file, slot)), "slot {slot} of {id} has no real space");
    }
}

fn reclaim(space: &mut Space, model: &mut Model, works: bool, all: bool) {
    let reserve = if all { Reserve::Nothing } else { Reserve::Share };
    while let Some(plan) = space.plan_reclaim(reserve) {
        let (Reclaim::Punch(Run { file, slots }) | Reclaim::Shrink(Run { file, slots })) = plan.clone();
        assert!(!slots.is_empty() && slots.end <= model.lens[&file]);
        assert!(slots.clone().all(|slot| !model.taken.contains(&(file, slot))), "{plan:?} is in use");
        space.reclaimed(&plan, works);
        if !works {
            return;
        }
        for slot in slots.clone() {
            model.real.remove(&(file, slot));
        }
        if let Reclaim::Shrink(_) = plan {
            assert_eq!(slots.end, model.lens[&file]);
            model.lens.insert(file, slots.start);
            model.lens.retain(|_, len| *len > 0);
        }
    }
    let unneeded = model.real.difference(&model.taken).count();
    let reserve = if all { 0 } else { 16.max(model.taken.len() / 16) };
    assert!(unneeded <= reserve, "{unneeded} free slots keep their space");
}

/// Each loose end belongs to an extent; its slot has a part of its space behind the cut.
fn cut_loose_ends(space: &mut Space, model: &mut Model) {
    for end in space.loose_ends() {
        assert!(model.taken.contains(&(end.file, end.slot)), "{end:?} is of no extent");
        assert!(model.real.remove(&(end.file, end.slot)), "{end:?} was cut before");
        space.cut(end);
    }
    assert_eq!(space.loose_ends(), []);
}

fn restart(space: &mut Space, model: &Model) {
    *space = space.without_extents();
    for &(id, slots) in &model.extents {
        space.restore(id, slots).unwrap();
        assert_eq!(space.restore(id, 1).unwrap_err().kind(), Kind::Corrupt);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_overlap_and_nothing_lost(steps in prop::collection::vec(step(), 1..120)) {
        let (mut space, mut model) = (Space::new(), Model::default());
        for step in steps {
            match step {
                Step::Take { slots, space_fails } => take(&mut space, &mut model, slots, space_fails),
                Step::TakeHeld(slots) => {
                    if let Some(id) = space.take_held(slots) {
                        assert_eq!(model.lowest_run(slots, |file, slot| model.real.contains(&(file, slot)))
                            .map(|lowest| lowest <= id), Some(true));
                        model.take(id, slots);
                        assert!((id.slot..id.slot + slots).all(|slot| model.real.contains(&(id.file, slot))));
                    }
                }
                Step::Free(index) if !model.extents.is_empty() => {
                    let (id, slots) = model.free(index.index(model.extents.len()));
                    assert!(space.is_taken(id, slots));
                    space.free(id, slots).unwrap();
                    assert_eq!(space.free(id, slots).unwrap_err().kind(), Kind::Invalid);
                }
                Step::FreeMany(part) => {
                    let mut index = 0;
                    while index < model.extents.len() {
                        if (index as u8).wrapping_mul(37) < part {
                            let (id, slots) = model.free(index);
                            space.free(id, slots).unwrap();
                        }
                        index += 1;
                    }
                }
                Step::Reclaim { works, all } => reclaim(&mut space, &mut model, works, all),
                Step::Write(index, part) if !model.extents.is_empty() => {
                    let (id, slots) = model.extents[index.index(model.extents.len())];
                    let slot = SLOT_BYTES as u64;
                    space.note_end(id, u64::from(slots - 1) * slot + part * slot / 1000);
                }
                Step::CutLooseEnds => cut_loose_ends(&mut space, &mut model),
                Step::Restart => restart(&mut space, &model),
                Step::Free(_) | Step::Write(..) => {}
            }
            model.check(&space);
        }
        // Nothing was lost: everything can be freed, and one run fills each file again.
        while !model.extents.is_empty() {
            let (id, slots) = model.free(0);
            space.free(id, slots).unwrap();
        }
        for (&file, &len) in &model.lens.clone() {
            if let Some(lowest) = model.lowest_run(len, |_, _| true) {
                let (id, _) = space.take(len).unwrap();
                assert_eq!(id, lowest);
                model.take(id, len);
            } else {
                assert!(model.lens.range(..file).any(|(_, &lower)| lower >= len));
            }
        }
    }
}

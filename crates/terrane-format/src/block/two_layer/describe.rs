//! Describes the tree and the trailer of a two-layer block for `terrane dump`.

use super::{HEAD_BYTES, LEAF, LEAF_BYTES, LEAF_HEAD_BYTES, TRAILER_BYTES, TwoLayerBlock};
use crate::block::entry_pos::Intervals;
use crate::dump::{self, Field};

impl TwoLayerBlock<'_> {
    /// Describes everything before the entries.
    pub(in crate::block) fn describe_tree(self, fields: &mut Vec<Field>) {
        for leaf in 0..self.layout.leaf_count {
            let intervals = leaf * LEAF..((leaf + 1) * LEAF).min(self.count());
            let list =
                |show: &dyn Fn(usize) -> String| intervals.clone().map(show).collect::<Vec<_>>().join(" ");
            let heads = list(&|interval| format!("{:016x}", self.head(interval)));
            let offsets = list(&|interval| (self.start(interval) - self.layout.entries_at).to_string());
            let at = leaf * LEAF_BYTES;
            fields.push(Field::new(at, LEAF_HEAD_BYTES, format!("leaf[{leaf}].heads"), heads));
            let name = format!("leaf[{leaf}].offsets");
            fields.push(Field::new(at + LEAF_HEAD_BYTES, LEAF_BYTES - LEAF_HEAD_BYTES, name, offsets));
        }
        let at = self.layout.leaf_count * LEAF_BYTES;
        let prefix = self.prefix();
        if !prefix.is_empty() {
            fields.push(Field::new(at, prefix.len(), "prefix", dump::text(prefix)));
        }
        let Some(starts) = &self.layout.parts else { return };
        let lens = (0..self.layout.leaf_count).map(|leaf| self.part(leaf).len().to_string());
        let lens = lens.collect::<Vec<_>>().join(" ");
        fields.push(Field::new(at + prefix.len(), 2 * self.layout.leaf_count, "part lengths", lens));
        for leaf in (0..self.layout.leaf_count).filter(|leaf| !self.part(*leaf).is_empty()) {
            let part = self.part(leaf);
            fields.push(Field::new(starts[leaf], part.len(), format!("leaf[{leaf}].part"), dump::text(part)));
        }
    }

    pub(in crate::block) fn describe_trailer(self, fields: &mut Vec<Field>) {
        let layout = self.layout;
        let at = self.bytes.len() - TRAILER_BYTES;
        let parts = if layout.parts.is_some() { "1 (some leaves have parts)" } else { "0 (no parts)" };
        let entries = crate::wire::u32_at(self.bytes, at + HEAD_BYTES + 5).unwrap_or(0);
        fields.push(Field::new(at, HEAD_BYTES, "seq_base", layout.number.base()));
        fields.push(Field::new(at + 8, 2, "prefix_len", layout.prefix_len));
        fields.push(Field::new(at + 10, 1, "intervals", layout.interval_count));
        fields.push(Field::new(at + 11, 1, "number_bytes", layout.number.bytes));
        fields.push(Field::new(at + 12, 1, "parts", parts));
        fields.push(Field::new(at + 13, 4, "entries", entries));
        fields.push(Field::new(at + 17, 1, "encoding", "2 (two-layer)"));
    }
}

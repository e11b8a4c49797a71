//! Requests to buckets, counted by the part of a database that they are for.

/// A part of a database that has objects in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketPart {
    /// Bytes of the journal.
    Journal,
    /// Records of the manifest.
    Manifest,
    /// Extents.
    Data,
    /// Compaction jobs for workers on other machines.
    Jobs,
    /// Everything else: lists of garbage, pins, checks of the bucket.
    Other,
}

impl BucketPart {
    /// All parts, in the order of their declaration.
    pub const ALL: [BucketPart; 5] =
        [BucketPart::Journal, BucketPart::Manifest, BucketPart::Data, BucketPart::Jobs, BucketPart::Other];
}

/// Requests for one part, and the bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartRequests {
    /// Requests that create an object, including those that failed or found one.
    pub creates: u64,
    /// Requests that read a range of an object, including those that failed.
    pub reads: u64,
    /// Requests that list objects: one for each thousand objects.
    pub lists: u64,
    /// Requests that delete objects: one for each thousand objects.
    pub deletes: u64,
    /// Bytes of objects in requests that create.
    pub bytes_sent: u64,
    /// Bytes of objects in the answers of reads.
    pub bytes_received: u64,
}

impl PartRequests {
    /// The sum of both.
    #[must_use]
    fn with(self, other: PartRequests) -> PartRequests {
        let sum = PartRequests {
            creates: self.creates.saturating_add(other.creates),
            reads: self.reads.saturating_add(other.reads),
            lists: self.lists.saturating_add(other.lists),
            deletes: self.deletes.saturating_add(other.deletes),
            bytes_sent: self.bytes_sent.saturating_add(other.bytes_sent),
            bytes_received: self.bytes_received.saturating_add(other.bytes_received),
        };
        // Nothing between two numbers: they are read one after the other while requests are counted.
        debug_assert!(sum.bytes_sent >= self.bytes_sent, "a sum is no less than its parts");
        sum
    }
}

/// Requests to the buckets of a database, by part, since they were opened.
///
/// ```
/// # use terrane_storage::{BucketPart, BucketRequests};
/// let mut requests = BucketRequests::default();
/// requests.part_mut(BucketPart::Data).creates += 2;
/// let both = requests.with(&requests);
/// assert_eq!(both.part(BucketPart::Data).creates, 4);
/// assert_eq!(both.part(BucketPart::Journal).creates, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketRequests([PartRequests; BucketPart::ALL.len()]);

impl BucketRequests {
    /// Those for a part.
    #[must_use]
    pub fn part(&self, part: BucketPart) -> &PartRequests {
        &self.0[part as usize]
    }

    /// Those for a part, to be changed.
    pub fn part_mut(&mut self, part: BucketPart) -> &mut PartRequests {
        &mut self.0[part as usize]
    }

    /// The sums over both, by part.
    #[must_use]
    pub fn with(&self, other: &BucketRequests) -> BucketRequests {
        let mut sums = *self;
        BucketPart::ALL.iter().for_each(|part| {
            let sum = sums.part_mut(*part);
            *sum = sum.with(*other.part(*part));
            debug_assert!(sum.creates >= other.part(*part).creates, "a sum is no less than its parts");
        });
        sums
    }
}

//! The queue of writes to the tier: frames that readers fetched, and objects that were uploaded.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

use super::header::{FRAME_PAYLOAD_BYTES, FrameKey, ObjectKey};

/// Most bytes of frames that readers fetched.
pub(super) const FETCHED_BYTES_MAX: u64 = 16 << 20;
/// Most bytes of uploaded objects; one object may always wait.
pub(super) const UPLOADED_BYTES_MAX: u64 = 64 << 20;

/// Frames and objects that wait. Frames go first: a reader wants them.
#[derive(Debug, Default)]
pub(super) struct Queue {
    order: VecDeque<FrameKey>,
    /// The frames of `order`, and the one that is being written.
    frames: BTreeMap<FrameKey, Bytes>,
    frame_bytes: u64,
    objects: VecDeque<Object>,
    object_bytes: u64,
    is_writing: bool,
}

#[derive(Debug)]
struct Object {
    key: ObjectKey,
    parts: VecDeque<Bytes>,
    next_frame: u32,
    /// All of its bytes: its parts stay in memory until the last frame was cut.
    bytes: u64,
}

impl Queue {
    /// Adds a frame. Returns the bytes that were dropped because there is no room.
    pub(super) fn push(&mut self, key: FrameKey, bytes: Bytes) -> u64 {
        let len = bytes.len() as u64;
        debug_assert!(len > 0, "a frame has a byte");
        if self.frames.contains_key(&key) {
            return 0;
        }
        if self.frame_bytes + len > FETCHED_BYTES_MAX {
            return len;
        }
        self.frame_bytes += len;
        debug_assert!(self.frame_bytes <= FETCHED_BYTES_MAX, "what waits is bounded");
        self.order.push_back(key);
        self.frames.insert(key, bytes);
        0
    }

    /// Adds an object. Returns the bytes that were dropped because there is no room.
    pub(super) fn push_object(&mut self, key: ObjectKey, parts: &[Bytes]) -> u64 {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        if self.object_bytes > 0 && self.object_bytes + bytes > UPLOADED_BYTES_MAX {
            return bytes;
        }
        debug_assert!(bytes > 0, "an object has a byte");
        self.object_bytes += bytes;
        self.objects.push_back(Object { key, parts: parts.iter().cloned().collect(), next_frame: 0, bytes });
        0
    }

    /// A frame that waits or is being written.
    pub(super) fn find(&self, key: &FrameKey) -> Option<&Bytes> {
        self.frames.get(key)
    }

    /// Takes the next frame; [`Queue::written`] follows.
    pub(super) fn next(&mut self) -> Option<(FrameKey, Bytes)> {
        debug_assert!(!self.is_writing, "one frame is written at a time");
        while let Some(key) = self.order.pop_front() {
            if let Some(bytes) = self.frames.get(&key) {
                self.is_writing = true;
                return Some((key, bytes.clone()));
            }
        }
        while let Some(object) = self.objects.front_mut() {
            if let Some((key, bytes)) = object.cut() {
                self.is_writing = true;
                return Some((key, bytes));
            }
            self.object_bytes -= object.bytes;
            self.objects.pop_front();
        }
        None
    }

    /// Notes that the frame is written, or given up.
    pub(super) fn written(&mut self, key: &FrameKey) {
        self.is_writing = false;
        self.take(key);
    }

    fn take(&mut self, key: &FrameKey) {
        if let Some(bytes) = self.frames.remove(key) {
            self.frame_bytes -= bytes.len() as u64;
        }
    }

    pub(super) fn forget(&mut self, object: &ObjectKey) {
        let of_object = |key: &&FrameKey| key.object == *object;
        let keys: Vec<FrameKey> = self.frames.keys().filter(of_object).copied().collect();
        keys.iter().for_each(|key| self.take(key));
        let gone = self.objects.iter().filter(|waiting| waiting.key == *object);
        self.object_bytes -= gone.map(|waiting| waiting.bytes).sum::<u64>();
        self.objects.retain(|waiting| waiting.key != *object);
        debug_assert!(!self.objects.is_empty() || self.object_bytes == 0, "bytes are those of objects");
    }

    pub(super) fn clear(&mut self) {
        *self = Queue { is_writing: self.is_writing, ..Queue::default() };
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.is_writing && self.order.is_empty() && self.objects.is_empty()
    }
}

impl Object {
    /// The next frame of the object.
    fn cut(&mut self) -> Option<(FrameKey, Bytes)> {
        let mut frame = BytesMut::new();
        while frame.len() < FRAME_PAYLOAD_BYTES as usize
            && let Some(mut part) = self.parts.pop_front()
        {
            let taken = part.split_to(part.len().min(FRAME_PAYLOAD_BYTES as usize - frame.len()));
            frame.extend_from_slice(&taken);
            if !part.is_empty() {
                self.parts.push_front(part);
            }
        }
        let key = FrameKey { object: self.key, frame: self.next_frame };
        self.next_frame += 1;
        (!frame.is_empty()).then(|| (key, frame.freeze()))
    }
}

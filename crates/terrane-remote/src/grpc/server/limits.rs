//! Limits of requests of clients, and memory that the running calls share.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Kind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tonic::{Code, Status};

use super::counts::{Call, Counts, Operation, Refusal};
use super::{Log, ServerSettings};
use crate::grpc::wire;

/// Bytes are counted in units, because a semaphore counts to 2^32.
const UNIT_BYTES: u64 = 4096;
/// Most bytes that a limit may say.
const LIMIT_BYTES_MAX: u64 = 1 << 40;
/// Least and most bytes that may be under way on one connection.
const WINDOW_BYTES_MIN: u64 = 64 << 10;
const WINDOW_BYTES_MAX: u64 = 16 << 20;
/// Most lists at once: a list is read whole, and may be long.
const LISTS_MAX: usize = 2;

/// Limits of requests of clients. A call beyond `calls_max` is refused as busy, one beyond
/// `bytes_in_flight_max` waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of an object. Default 256 MiB.
    pub object_bytes_max: u64,
    /// Most bytes of objects that all calls hold at once. Default 512 MiB.
    pub bytes_in_flight_max: u64,
    /// Most calls at once. Default 256.
    pub calls_max: usize,
    /// Most connections. Default 256.
    pub connections_max: usize,
    /// Longest call. Default 300 s; a client may allow less.
    pub call_time_max: Duration,
    /// How long a connection may be without a call that is not refused. Default 10 s.
    pub first_call_time_max: Duration,
    /// Most threads for calls of the bucket, which block. Default 32.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            object_bytes_max: 256 << 20,
            bytes_in_flight_max: 512 << 20,
            calls_max: 256,
            connections_max: 256,
            call_time_max: Duration::from_secs(300),
            first_call_time_max: Duration::from_secs(10),
            threads: 32,
        }
    }
}

impl Limits {
    pub(super) fn check(&self) -> terrane_base::Result<()> {
        let counts = [self.calls_max, self.connections_max, self.threads];
        if self.object_bytes_max == 0 || counts.iter().any(|count| !(1..=1 << 20).contains(count)) {
            return Err(Error::invalid(
                "a limit of the service that is 0 or above 2^20: nothing could be served",
            ));
        }
        if self.bytes_in_flight_max > LIMIT_BYTES_MAX {
            let bytes = self.bytes_in_flight_max;
            return Err(Error::invalid(format!("{bytes} bytes in flight: at most {LIMIT_BYTES_MAX} can be")));
        }
        if self.bytes_in_flight_max < self.object_bytes_max || self.bytes_in_flight_max < wire::READ_BYTES_MAX
        {
            let message = format!(
                "{} bytes in flight: at least one object of {} bytes and one read of {} bytes must fit",
                self.bytes_in_flight_max,
                self.object_bytes_max,
                wire::READ_BYTES_MAX
            );
            return Err(Error::invalid(message));
        }
        Ok(())
    }

    /// Bytes that clients may send on one connection before they are read. All connections together hold no
    /// more than the calls do, unless there are so many that each would stand still.
    pub(super) fn connection_window(&self) -> u32 {
        let share = self.bytes_in_flight_max / self.connections_max as u64;
        let window = share.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        debug_assert!(window <= share.max(WINDOW_BYTES_MIN), "at most its share");
        u32::try_from(window).unwrap_or(u32::MAX)
    }
}

/// Memory and permits that the running calls share.
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) env: Env,
    pub(super) counts: Counts,
    pub(super) log: Option<Log>,
    /// True from the moment from which the server takes nothing more.
    pub(super) ending: watch::Sender<bool>,
    pub(super) connections: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    /// Calls that last as long as their client likes: as many as connections, beside the others.
    streams: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    units: u32,
}

impl Shared {
    pub(super) fn new(settings: &ServerSettings, env: Env) -> Shared {
        let limits = settings.limits;
        // Rounded up as a call's bytes are: an object of all bytes in flight has room.
        let units = units(limits.bytes_in_flight_max);
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits));
        assert!(units > 0, "the limits were checked: a read fits");
        Shared {
            limits,
            env,
            counts: Counts::default(),
            log: settings.log.clone(),
            ending: watch::Sender::new(false),
            connections: semaphore(limits.connections_max),
            calls: semaphore(limits.calls_max),
            streams: semaphore(limits.connections_max),
            bytes: semaphore(units as usize),
            lists: semaphore(LISTS_MAX),
            units,
        }
    }

    /// Begins a call, unless there are too many.
    pub(super) fn begin<T>(
        self: &Arc<Self>,
        operation: Operation,
        request: &tonic::Request<T>,
    ) -> Result<Call, Status> {
        let (calls, most) = match operation {
            Operation::CreateMany => (&self.streams, self.limits.connections_max),
            _ => (&self.calls, self.limits.calls_max),
        };
        let Ok(permit) = Arc::clone(calls).try_acquire_owned() else {
            self.counts.refuse(Refusal::Calls);
            let text = format!("the server has {most} calls under way: try again later");
            return Err(wire::refusal(Code::ResourceExhausted, Kind::Busy, text));
        };
        Ok(Call::new(Arc::clone(self), operation, permit, request))
    }

    /// Room for so many bytes of objects; waits for it.
    pub(super) async fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        let units = units(bytes).min(self.units);
        debug_assert!(
            bytes > self.limits.bytes_in_flight_max || u64::from(units) * UNIT_BYTES >= bytes,
            "room for all"
        );
        permit(Arc::clone(&self.bytes).acquire_many_owned(units).await)
    }

    /// Room for so many bytes of objects, if there is now.
    pub(super) fn room_now(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.bytes).try_acquire_many_owned(units(bytes).min(self.units)).ok()
    }

    /// Gives back what of the room is not needed for so many bytes.
    pub(super) fn shrink(&self, room: &mut OwnedSemaphorePermit, bytes: u64) {
        let spare = room.num_permits().saturating_sub(units(bytes) as usize);
        drop(room.split(spare));
        debug_assert!(room.num_permits() <= self.units as usize, "at most all of it");
    }

    /// Room for a list; waits for it.
    pub(super) async fn room_for_list(&self) -> Result<OwnedSemaphorePermit, Status> {
        permit(Arc::clone(&self.lists).acquire_owned().await)
    }

    /// The metrics, with those of a bucket that has failed or not.
    pub(super) fn metrics_text(&self, is_failed: bool) -> String {
        let connections = self.limits.connections_max - self.connections.available_permits();
        let calls = self.limits.calls_max - self.calls.available_permits();
        debug_assert!(calls <= self.limits.calls_max, "a permit is given back once");
        let units = self.units as usize - self.bytes.available_permits();
        self.counts.text((connections, calls), units as u64 * UNIT_BYTES, is_failed)
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

fn permit<E>(permit: Result<OwnedSemaphorePermit, E>) -> Result<OwnedSemaphorePermit, Status> {
    permit.map_err(|_| wire::refusal(Code::Unavailable, Kind::Busy, "the server is ending"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(bytes: u64) -> Limits {
        Limits { object_bytes_max: bytes, bytes_in_flight_max: bytes, ..Limits::default() }
    }

    #[test]
    fn an_object_of_all_bytes_in_flight_has_room() {
        for bytes in [wire::READ_BYTES_MAX, wire::READ_BYTES_MAX + 1, LIMIT_BYTES_MAX] {
            limits(bytes).check().expect("possible");
            let settings =
                ServerSettings { limits: limits(bytes), ..ServerSettings::new(([127, 0, 0, 1], 0).into()) };
            let shared = Shared::new(&settings, Env::real());
            let mut room = shared.room_now(bytes).expect("nothing is under way");
            assert!(room.num_permits() as u64 * UNIT_BYTES >= bytes, "room for every byte of {bytes}");
            assert!(shared.room_now(1).is_none(), "and for no more");
            shared.shrink(&mut room, 1);
            assert_eq!(room.num_permits(), 1);
            drop(shared.room_now(bytes - UNIT_BYTES).expect("what was not needed is free"));
        }
        for bytes in [LIMIT_BYTES_MAX + 1, u64::MAX] {
            limits(bytes).check().expect_err("more than can be counted");
        }
    }

    #[test]
    fn unread_bytes_of_all_connections_are_bounded() {
        for (connections_max, window) in [(1, WINDOW_BYTES_MAX), (256, 2 << 20), (1 << 20, WINDOW_BYTES_MIN)]
        {
            let limits = Limits { connections_max, ..Limits::default() };
            assert_eq!(u64::from(limits.connection_window()), window, "{connections_max} connections");
        }
    }
}

//! What clients may ask for, and what the calls under way share.

use std::sync::Arc;
use std::time::Duration;

use terrane_base::env::Env;
use terrane_base::{Error, Kind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Status};

use super::counts::{Call, Counts, Operation, Refusal};
use super::{Log, ServerSettings};
use crate::grpc::wire;

/// Bytes are counted in units, because a semaphore counts to 2^32.
const UNIT_BYTES: u64 = 4096;
/// Most lists at once: a list is read whole, and may be long.
const LISTS_MAX: usize = 2;

/// What clients may ask for. A call beyond `calls_max` is refused as busy, one beyond `bytes_in_flight_max`
/// waits.
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
    /// How long a connection may be without its first call. Default 10 s.
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
}

/// What the calls under way share.
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) env: Env,
    pub(super) counts: Counts,
    pub(super) log: Option<Log>,
    pub(super) connections: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    units: u32,
}

impl Shared {
    pub(super) fn new(settings: &ServerSettings, env: Env) -> Shared {
        let limits = settings.limits;
        let units = u32::try_from(limits.bytes_in_flight_max / UNIT_BYTES).unwrap_or(u32::MAX).min(1 << 28);
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits));
        assert!(units > 0, "the limits were checked: a read fits");
        Shared {
            limits,
            env,
            counts: Counts::default(),
            log: settings.log.clone(),
            connections: semaphore(limits.connections_max),
            calls: semaphore(limits.calls_max),
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
        let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() else {
            self.counts.refuse(Refusal::Calls);
            let text = format!("the server has {} calls under way: try again later", self.limits.calls_max);
            return Err(wire::refusal(Code::ResourceExhausted, Kind::Busy, text));
        };
        Ok(Call::new(Arc::clone(self), operation, permit, request))
    }

    /// Room for so many bytes of objects; waits for it.
    pub(super) async fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.units);
        debug_assert!(
            bytes > self.limits.bytes_in_flight_max || u64::from(units) * UNIT_BYTES >= bytes,
            "room for all"
        );
        permit(Arc::clone(&self.bytes).acquire_many_owned(units).await)
    }

    /// Room for a list; waits for it.
    pub(super) async fn room_for_list(&self) -> Result<OwnedSemaphorePermit, Status> {
        permit(Arc::clone(&self.lists).acquire_owned().await)
    }

    pub(super) fn metrics_text(&self) -> String {
        let connections = self.limits.connections_max - self.connections.available_permits();
        let calls = self.limits.calls_max - self.calls.available_permits();
        debug_assert!(calls <= self.limits.calls_max, "a permit is given back once");
        let units = self.units as usize - self.bytes.available_permits();
        self.counts.text(connections, calls, units as u64 * UNIT_BYTES)
    }
}

fn permit<E>(permit: Result<OwnedSemaphorePermit, E>) -> Result<OwnedSemaphorePermit, Status> {
    permit.map_err(|_| wire::refusal(Code::Unavailable, Kind::Busy, "the server is ending"))
}

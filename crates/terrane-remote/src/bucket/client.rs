//! A bucket behind a client of the crate `object_store`.
//!
//! The client's calls are tasks of a runtime that the bucket owns; callers wait with a lock and a condition
//! variable, so a call may come from any thread, also from one that runs another runtime. Every request has a
//! time limit, and no answer is read beyond what was asked for.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, PutMode, PutOptions, PutPayload};
use terrane_base::{Error, Kind, Result};

use super::hedge::{Hedge, HedgeCounts};
use super::tasks::{self, Tasks};
use super::{Bucket, Create, Listed, Pending, names};

/// Ranges closer than this are read by one request: a request costs as much as these bytes.
const GAP_BYTES_MAX: u64 = 256 << 10;
/// Most bytes of one request for several ranges.
const REQUEST_BYTES_MAX: u64 = 8 << 20;
/// Requests of one call that are under way at once.
const REQUESTS_AT_ONCE: usize = 8;

type Client = Arc<dyn ObjectStore>;
type ClientError = object_store::Error;

/// Objects behind a client: S3 and what speaks its protocol, with the feature `s3`.
pub struct ClientBucket {
    client: Client,
    url: Arc<str>,
    tasks: Tasks,
    /// `None` if reads are not hedged.
    hedge: Option<Arc<Hedge>>,
}

impl ClientBucket {
    /// The bucket behind `client`, which repeats no request itself. `url` is for messages.
    ///
    /// # Errors
    /// `Io` if the operating system refuses threads.
    pub fn new(client: Client, url: &str) -> Result<Self> {
        Ok(ClientBucket { client, url: url.into(), tasks: Tasks::start(url)?, hedge: Some(Arc::default()) })
    }

    /// Has short reads asked for a second time where their answer takes longer than almost all others, as a
    /// new bucket does, or not.
    #[must_use]
    pub fn with_hedged_reads(mut self, hedges: bool) -> Self {
        self.hedge = hedges.then(Arc::default);
        self
    }

    /// The bucket with at most this time for a request.
    #[cfg(feature = "s3")]
    pub(super) fn limited(mut self, request_max: Duration) -> ClientBucket {
        self.tasks.limit_requests(request_max);
        self
    }

    /// Starts a request on the runtime.
    fn begin<T: Send + 'static>(
        &self,
        what: &'static str,
        name: &str,
        bytes: u64,
        request: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Pending<T> {
        let (url, name) = (Arc::clone(&self.url), name.to_owned());
        let limit = self.tasks.time_limit(bytes);
        self.tasks.begin(limit, move || tasks::late(what, &url, &name, limit), request)
    }

    fn path(&self, name: &str) -> Result<Path> {
        names::check(name)?;
        Path::parse(name).map_err(|why| Error::invalid(format!("object name {name:?}: {why}")))
    }
}

impl fmt::Debug for ClientBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBucket").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Bucket for ClientBucket {
    fn url(&self) -> &str {
        &self.url
    }

    fn begin_create(&self, name: &str, parts: Vec<Bytes>) -> Pending<Create> {
        let path = match self.path(name).and_then(|path| super::check_parts(name, &parts).map(|()| path)) {
            Ok(path) => path,
            Err(error) => return Pending::ready(Err(error)),
        };
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let (client, url) = (Arc::clone(&self.client), Arc::clone(&self.url));
        self.begin("create", name, bytes, async move {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match client.put_opts(&path, PutPayload::from_iter(parts), options).await {
                Ok(_) => Ok(Create::Created),
                Err(ClientError::AlreadyExists { .. } | ClientError::Precondition { .. }) => {
                    Ok(Create::AlreadyExists)
                }
                Err(why) => Err(explained("create", &url, path.as_ref(), why)),
            }
        })
    }

    fn begin_get_ranges(&self, name: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let backward = ranges.iter().find(|range| range.start > range.end);
        let backward = backward.map(|range| super::check_range(&self.url, name, range, range.end));
        let path = match backward.unwrap_or(Ok(())).and_then(|()| self.path(name)) {
            Ok(path) => path,
            Err(error) => return Pending::ready(Err(error)),
        };
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        let (client, url) = (Arc::clone(&self.client), Arc::clone(&self.url));
        // Several requests would be hedged by as many.
        let hedge = self.hedge.clone().filter(|_| ranges.len() == 1 || merged(&ranges).len() == 1);
        self.begin("read", name, bytes, async move {
            let read = || get_ranges(&client, &url, &path, &ranges);
            match &hedge {
                Some(hedge) => hedge.read(bytes, read).await,
                None => read().await,
            }
        })
    }

    fn hedges(&self) -> HedgeCounts {
        self.hedge.as_ref().map_or_else(HedgeCounts::default, |hedge| hedge.counts())
    }

    fn get_tail(&self, name: &str, bytes_max: u64) -> Result<Bytes> {
        let path = self.path(name)?;
        let (client, url) = (Arc::clone(&self.client), Arc::clone(&self.url));
        let request = async move { get(&client, &url, &path, GetRange::Suffix(bytes_max), bytes_max).await };
        self.begin("read", name, bytes_max.min(REQUEST_BYTES_MAX), request).wait()
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<Listed>> {
        let path = self.path(folder)?;
        let after = after.map(|after| self.path(after)).transpose()?;
        let (client, url) = (Arc::clone(&self.client), Arc::clone(&self.url));
        let (name, bytes) = (folder.to_owned(), names::LISTED_MAX as u64 * 64);
        let request = async move {
            let mut stream = match &after {
                None => client.list(Some(&path)),
                Some(after) => client.list_with_offset(Some(&path), after),
            };
            let mut listed = Vec::new();
            while let Some(object) = stream.next().await {
                listed.push(entry(&object.map_err(|why| explained("list", &url, &name, why))?));
                super::check_listed(&url, &name, listed.len())?;
            }
            // Not every store lists in order.
            listed.sort_unstable_by(|a: &Listed, b| a.name.cmp(&b.name));
            Ok(listed)
        };
        self.begin("list", folder, bytes, request).wait()
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        let paths = names.iter().map(|name| self.path(name)).collect::<Result<Vec<_>>>()?;
        let Some(first) = names.first().cloned() else { return Ok(()) };
        let (client, url) = (Arc::clone(&self.client), Arc::clone(&self.url));
        let (name, bytes) = (first.clone(), (names.len() as u64) << 14);
        let request = async move {
            let mut deleted = client.delete_stream(stream::iter(paths.into_iter().map(Ok)).boxed());
            while let Some(outcome) = deleted.next().await {
                match outcome {
                    Ok(_) | Err(ClientError::NotFound { .. }) => {}
                    Err(why) => return Err(explained("delete", &url, &name, why)),
                }
            }
            Ok(())
        };
        self.begin("delete", &first, bytes, request).wait()
    }
}

fn entry(object: &ObjectMeta) -> Listed {
    let micros = u64::try_from(object.last_modified.timestamp_micros()).unwrap_or(0);
    let modified = Duration::from_micros(micros);
    Listed { name: object.location.as_ref().to_owned(), bytes: object.size, modified }
}

/// Reads ranges, those that are close together by one request.
async fn get_ranges(client: &Client, url: &str, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let merged = merged(ranges);
    let requests = merged.iter().map(|range| {
        let len = range.end - range.start;
        get(client, url, path, GetRange::Bounded(range.clone()), len)
    });
    // Collected first: the futures borrow, and the order of results is that of the requests.
    let requests: Vec<_> = requests.collect();
    let answers: Vec<Bytes> = stream::iter(requests).buffered(REQUESTS_AT_ONCE).try_collect().await?;
    let cut = |range: &Range<u64>| {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let at = merged.partition_point(|merged| merged.end <= range.start);
        let from = &merged[at];
        let answer = &answers[at];
        super::check_range(url, path.as_ref(), range, from.start + answer.len() as u64)?;
        Ok(answer.slice((range.start - from.start) as usize..(range.end - from.start) as usize))
    };
    ranges.iter().map(cut).collect()
}

/// Ranges that cover all of `ranges`, in order, apart from each other: one request each.
pub(super) fn merged(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            // What overlaps must be in one, or it would be read twice.
            Some(last)
                if range.start < last.end
                    || range.start - last.end <= GAP_BYTES_MAX
                        && range.end - last.start <= REQUEST_BYTES_MAX =>
            {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    debug_assert!(merged.is_sorted_by(|a, b| a.end <= b.start), "each byte is in one request");
    merged
}

/// Reads one range, and no byte beyond `len`.
async fn get(client: &Client, url: &str, path: &Path, range: GetRange, len: u64) -> Result<Bytes> {
    let wanted = range.clone();
    let options = GetOptions { range: Some(range), ..GetOptions::default() };
    let answer = match client.get_opts(path, options).await {
        Ok(answer) => answer,
        Err(why @ ClientError::Generic { .. }) => {
            return Err(short_or(client, url, path, &wanted, why).await);
        }
        Err(why) => return Err(explained("read", url, path.as_ref(), why)),
    };
    let begins_there = match &wanted {
        GetRange::Bounded(range) => answer.range.start == range.start,
        _ => true,
    };
    let mut bytes = BytesMut::with_capacity((answer.range.end - answer.range.start).min(len) as usize);
    let mut stream = answer.into_stream();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|why| explained("read", url, path.as_ref(), why))?;
        if !begins_there || (bytes.len() + part.len()) as u64 > len {
            let message = "the object store answered with other bytes than were asked for";
            return Err(Error::new(Kind::Io, message).at(names::place(url, path.as_ref()), 0));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.freeze())
}

/// The error of a refused read: `Corrupt` if the object ends before the range.
#[cold]
async fn short_or(client: &Client, url: &str, path: &Path, range: &GetRange, why: ClientError) -> Error {
    let head = GetOptions { head: true, ..GetOptions::default() };
    let size = client.get_opts(path, head).await.map(|answer| answer.meta.size);
    if let (GetRange::Bounded(range), Ok(size)) = (range, size)
        && let Err(error) = super::check_range(url, path.as_ref(), range, size)
    {
        return error;
    }
    explained("read", url, path.as_ref(), why)
}

/// The engine's error for a client's, with the remedy.
#[cold]
fn explained(what: &str, url: &str, name: &str, why: ClientError) -> Error {
    let place = names::place(url, name);
    let (kind, remedy) = match &why {
        ClientError::NotFound { .. } if what == "read" => return super::missing(url, name),
        ClientError::NotFound { .. } => (Kind::Invalid, "; create the bucket, or correct its name"),
        ClientError::PermissionDenied { .. } => {
            (Kind::Invalid, "; give this key the right to create, read, list and delete objects")
        }
        ClientError::Unauthenticated { .. } => (Kind::Invalid, "; check the key and its secret"),
        ClientError::InvalidPath { .. }
        | ClientError::NotSupported { .. }
        | ClientError::NotImplemented { .. }
        | ClientError::UnknownConfigurationKey { .. } => {
            (Kind::Invalid, "; use an object store that supports this")
        }
        _ => (Kind::Io, ""),
    };
    Error::new(kind, format!("cannot {what} {place}: {why}{remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of one range")]
    fn close_ranges_are_read_by_one_request() {
        let gap = GAP_BYTES_MAX;
        assert_eq!(merged(&[5..9, 0..3, 7..8, 4..4]), [0..9]);
        assert_eq!(merged(&[0..1, gap + 1..gap + 2]), [0..gap + 2]);
        assert_eq!(merged(&[0..1, gap + 2..gap + 3]), [0..1, gap + 2..gap + 3]);
        let long = REQUEST_BYTES_MAX;
        assert_eq!(merged(&[0..long, long..long + 1]), [0..long, long..long + 1]);
        assert_eq!(merged(&[0..long, long - 1..long + 1]), [0..long + 1]);
        assert_eq!(merged(&[]), Vec::<Range<u64>>::new());
    }
}

//! Bodies of the fuzz targets for the messages of the service: what a server gets from a client, and a client
//! from a server. Calls pass through the code that a connection would carry them to, without a connection.

use prost::Message;

pub use super::bucket::answers::{answer, answer_seeds};
pub use super::server::requests::{request, request_seeds};

/// Most messages of a stream.
const MESSAGES_MAX: usize = 64;

/// The messages of a stream: each behind its length in two bytes. The stream ends at bytes that do not
/// decode.
pub(super) fn messages<M: Message + Default>(mut bytes: &[u8]) -> Vec<M> {
    let mut messages = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<2>()
        && messages.len() < MESSAGES_MAX
    {
        let (message, behind) = rest.split_at(usize::from(u16::from_le_bytes(*len)).min(rest.len()));
        let Ok(message) = M::decode(message) else { break };
        messages.push(message);
        bytes = behind;
    }
    messages
}

/// The input that [`messages`] reads as these.
pub(super) fn stream_of<M: Message>(messages: &[M]) -> Vec<u8> {
    let one = |message: &M| {
        let bytes = message.encode_to_vec();
        let len = u16::try_from(bytes.len()).expect("the messages of a corpus are short");
        [&len.to_le_bytes()[..], &bytes].concat()
    };
    messages.iter().flat_map(one).collect()
}

/// Runs a call to its end.
pub(super) fn block_on<T>(call: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().max_blocking_threads(1).build();
    runtime.expect("the system has a thread").block_on(call)
}

//! The page of metrics: plain HTTP, one request for each connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::limits::Shared;
use crate::Bucket;

/// Most connections at once.
const CONNECTIONS_MAX: usize = 16;
/// Longest request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a request and its answer may take.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Answers requests until the runtime ends.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>, bucket: Arc<dyn Bucket>) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (shared, bucket) = (Arc::clone(&shared), Arc::clone(&bucket));
        tokio::spawn(async move {
            // A client that does not read its answer gets none.
            drop(tokio::time::timeout(TIME_MAX, answer(stream, &shared, &*bucket)).await);
            drop(permit);
        });
    }
}

async fn answer(mut stream: TcpStream, shared: &Shared, bucket: &dyn Bucket) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 1024];
        let len = stream.read(&mut part).await?;
        if len == 0 || request.len() + len > REQUEST_BYTES_MAX {
            return Ok(());
        }
        request.extend_from_slice(&part[..len]);
    }
    let path = request.strip_prefix(b"GET ").and_then(|rest| rest.split(|byte| b" ?".contains(byte)).next());
    let (status, body) = match path {
        Some(b"/metrics") => ("200 OK", shared.metrics_text(bucket.is_failed())),
        Some(_) => ("404 Not Found", "the page is /metrics\n".to_owned()),
        None => ("405 Method Not Allowed", "use GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

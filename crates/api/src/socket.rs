//! The socket of one connection. It ends stalled writes and gives hyper's own error responses the
//! form of every error.
//!
//! hyper answers a request head that it cannot parse (not HTTP/1, too large, path too long) without
//! a body, and has no hook for that. So the response is recognised when it is written: a head of
//! status 4xx without `X-Request-Id`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;

use super::middleware;
use farescan_core::app::request_id::REQUEST_ID;

/// hyper's own error responses are shorter.
const MAX_HYPER_ERROR_BYTES: usize = 256;

pub(super) struct ClientSocket {
    inner: Pin<Box<TimeoutStream<TcpStream>>>,
    /// The part of the replacement response that is not written yet.
    replacement: Option<Bytes>,
}

impl ClientSocket {
    /// Wraps `stream`. A write that makes no progress for `stall_timeout` fails.
    pub(super) fn new(stream: TcpStream, stall_timeout: Duration) -> Self {
        let mut inner = TimeoutStream::new(stream);
        inner.set_write_timeout(Some(stall_timeout));
        Self {
            inner: Box::pin(inner),
            replacement: None,
        }
    }

    /// Writes the replacement; then reports `hyper_bytes` as written, the length of hyper's
    /// response.
    fn write_replacement(
        &mut self,
        context: &mut Context<'_>,
        hyper_bytes: usize,
    ) -> Poll<io::Result<usize>> {
        while let Some(left) = self
            .replacement
            .as_mut()
            .filter(|left| left.has_remaining())
        {
            let written = ready!(self.inner.as_mut().poll_write(context, left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            left.advance(written);
        }
        self.replacement = None;
        Poll::Ready(Ok(hyper_bytes))
    }
}

/// The status of an error response that hyper made itself.
fn hyper_error_status(written: &[u8]) -> Option<u16> {
    let head = written
        .strip_prefix(b"HTTP/1.1 ")
        .filter(|_| written.len() <= MAX_HYPER_ERROR_BYTES)?;
    let status = str::from_utf8(head.get(..3)?).ok()?.parse().ok()?;
    let is_whole = written.ends_with(b"\r\n\r\n")
        && memmem::find(written, REQUEST_ID.as_str().as_bytes()).is_none();
    (is_whole && (400..500).contains(&status)).then_some(status)
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.replacement.is_none() {
            self.replacement = hyper_error_status(buffer).and_then(middleware::head_error_response);
        }
        if self.replacement.is_some() {
            return self.write_replacement(context, buffer.len());
        }
        self.inner.as_mut().poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match buffers {
            // A response without a body, as hyper's own error responses are.
            [head] => self.poll_write(context, head),
            _ => self.inner.as_mut().poll_write_vectored(context, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_shutdown(context)
    }
}

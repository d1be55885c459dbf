//! The socket of one connection: writes that make no progress end, and what hyper answers by itself gets the form of every error.
//!
//! hyper answers a head that it cannot read (no HTTP/1, too large, a path that is too long) without a body and without asking anybody. It
//! has no hook for that, so the answer is recognised on its way out: a head of status 4xx without the id that every answer of ours has.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;

use super::layers;

/// hyper's own answers are shorter.
const LONGEST_BARE: usize = 256;

pub(super) struct Stream {
    inner: Pin<Box<TimeoutStream<TcpStream>>>,
    /// What goes out in the place of hyper's own answer, as far as it has not.
    instead: Option<Bytes>,
}

impl Stream {
    /// A socket whose other end may leave what is written unread for `stall`.
    pub(super) fn new(stream: TcpStream, stall: Duration) -> Self {
        let mut inner = TimeoutStream::new(stream);
        inner.set_write_timeout(Some(stall));
        Self {
            inner: Box::pin(inner),
            instead: None,
        }
    }

    /// Writes what stands in the place of `bare`.
    fn write_instead(&mut self, context: &mut Context<'_>, bare: usize) -> Poll<io::Result<usize>> {
        while let Some(left) = self.instead.as_mut().filter(|left| left.has_remaining()) {
            let written = ready!(self.inner.as_mut().poll_write(context, left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            left.advance(written);
        }
        self.instead = None;
        Poll::Ready(Ok(bare))
    }
}

/// The status of an answer that hyper made by itself.
fn bare_status(written: &[u8]) -> Option<u16> {
    let head = written
        .strip_prefix(b"HTTP/1.1 ")
        .filter(|_| written.len() <= LONGEST_BARE)?;
    let status = str::from_utf8(head.get(..3)?).ok()?.parse().ok()?;
    let is_whole = written.ends_with(b"\r\n\r\n")
        && memmem::find(written, layers::REQUEST_ID.as_str().as_bytes()).is_none();
    (is_whole && (400..500).contains(&status)).then_some(status)
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.instead.is_none() {
            self.instead = bare_status(buffer).and_then(layers::refused_by_transport);
        }
        if self.instead.is_some() {
            return self.write_instead(context, buffer.len());
        }
        self.inner.as_mut().poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match buffers {
            // An answer without a body, as hyper's own are.
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

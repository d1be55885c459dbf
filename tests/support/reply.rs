//! Replies of the scripted server, including ones that break HTTP.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

/// One scripted reply.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
    gate: Option<Gate>,
    behavior: ReplyBehavior,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyBehavior {
    Good,
    /// Sends nothing and keeps the connection open.
    Hang,
    /// Resets the connection instead of replying.
    Reset,
    /// Sends half of the announced body and closes the connection.
    HalfBody,
    /// Sends half of the announced body and keeps the connection open.
    StalledBody,
    /// Sends the body byte by byte with this pause between.
    Drip(Duration),
    /// Sends bytes that are not HTTP.
    Garbage,
}

/// Whether the connection stays open after a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    KeepAlive,
    Close,
}

/// Delays replies until it is opened.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets delayed and future replies through.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn opened(&self) {
        let mut state = self.0.subscribe();
        state.wait_for(|open| *open).await.unwrap();
    }
}

impl Reply {
    /// This status and no body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            delay: Duration::ZERO,
            gate: None,
            behavior: ReplyBehavior::Good,
        }
    }

    /// 200 with this JSON.
    pub fn json(body: Value) -> Self {
        Self::status(200).with_json(body)
    }

    /// 200 with this body.
    pub fn text(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).body(body)
    }

    /// 503 `search_incomplete` in the form of the flights engine.
    pub fn search_incomplete(reason: &str) -> Self {
        let error = serde_json::json!({"type": "search_incomplete", "reason": reason, "message": "the search did not complete"});
        Self::status(503).with_json(serde_json::json!({ "error": error }))
    }

    pub fn hang() -> Self {
        Self {
            behavior: ReplyBehavior::Hang,
            ..Self::status(200)
        }
    }

    pub fn reset() -> Self {
        Self {
            behavior: ReplyBehavior::Reset,
            ..Self::status(200)
        }
    }

    pub fn garbage() -> Self {
        Self {
            behavior: ReplyBehavior::Garbage,
            ..Self::status(200)
        }
    }

    /// More than 8 MiB of valid JSON.
    pub fn huge() -> Self {
        Self::text(format!(
            "[{{\"filler\": \"{}\"}}]",
            "x".repeat(8 * 1024 * 1024)
        ))
    }

    /// A few hundred compressed bytes that expand to more than 8 MiB of valid JSON.
    pub fn compression_bomb() -> Self {
        let body = zstd::encode_all(Self::huge().body.as_slice(), 1).unwrap();
        Self::text(body).header("content-encoding", "zstd")
    }

    /// Declares gzip but is not compressed.
    pub fn not_gzip() -> Self {
        Self::text("this is no gzip").header("content-encoding", "gzip")
    }

    #[must_use]
    pub fn half_body(self) -> Self {
        Self {
            behavior: ReplyBehavior::HalfBody,
            ..self
        }
    }

    #[must_use]
    pub fn stalled_body(self) -> Self {
        Self {
            behavior: ReplyBehavior::StalledBody,
            ..self
        }
    }

    #[must_use]
    pub fn drip(self, pause: Duration) -> Self {
        Self {
            behavior: ReplyBehavior::Drip(pause),
            ..self
        }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..self
        }
    }

    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "tests write json!(…) in place"
    )]
    pub fn with_json(self, body: Value) -> Self {
        self.body(body.to_string())
            .header("content-type", "application/json")
    }

    /// Replies after this delay.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Replies once the gate is open.
    #[must_use]
    pub fn gated_by(self, gate: &Gate) -> Self {
        Self {
            gate: Some(gate.clone()),
            ..self
        }
    }

    pub(super) async fn write(&self, stream: &mut TcpStream) -> io::Result<ConnectionEnd> {
        sleep(self.delay).await;
        if let Some(gate) = &self.gate {
            gate.opened().await;
        }
        match self.behavior {
            ReplyBehavior::Hang => wait_for_disconnect(stream).await,
            ReplyBehavior::Reset => stream.set_zero_linger()?,
            ReplyBehavior::Garbage => stream.write_all(b"\x16\x03garbage\r\n\r\n").await?,
            ReplyBehavior::Good => {
                stream
                    .write_all(&[self.head().as_bytes(), &self.body].concat())
                    .await?;
                return Ok(ConnectionEnd::KeepAlive);
            }
            ReplyBehavior::HalfBody | ReplyBehavior::StalledBody => {
                stream
                    .write_all(
                        &[self.head().as_bytes(), &self.body[..self.body.len() / 2]].concat(),
                    )
                    .await?;
                if self.behavior == ReplyBehavior::StalledBody {
                    wait_for_disconnect(stream).await;
                }
            }
            ReplyBehavior::Drip(pause) => {
                stream.write_all(self.head().as_bytes()).await?;
                for byte in &self.body {
                    stream.write_all(&[*byte]).await?;
                    sleep(pause).await;
                }
                return Ok(ConnectionEnd::KeepAlive);
            }
        }
        Ok(ConnectionEnd::Close)
    }

    fn head(&self) -> String {
        let mut head = format!(
            "HTTP/1.1 {} Scripted\r\ncontent-length: {}\r\n",
            self.status,
            self.body.len()
        );
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head + "\r\n"
    }
}

/// Waits until the client closes the connection.
async fn wait_for_disconnect(stream: &mut TcpStream) {
    let mut byte = [0];
    while let Ok(1..) = tokio::io::AsyncReadExt::read(stream, &mut byte).await {}
}

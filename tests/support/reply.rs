//! What the scripted marketplace writes back, good manners or not.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

/// One scripted answer.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
    gate: Option<Gate>,
    manners: Manners,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manners {
    Good,
    /// Says nothing and keeps the connection.
    Hang,
    /// Breaks the connection instead of answering.
    Reset,
    /// Says how much will come, sends half of it and breaks off.
    HalfBody,
    /// Says how much will come, sends half of it and stands still.
    StalledBody,
    /// Sends a byte at a time with this between them.
    Drip(Duration),
    /// Sends bytes that are no HTTP.
    Noise,
}

/// What becomes of the connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    KeepAlive,
    Close,
}

/// Holds answers back until it is opened.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets all answers that it holds, and those to come, through.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn passed(&self) {
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
            manners: Manners::Good,
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

    /// 503 `search_incomplete`, as the flights engine says it.
    pub fn search_incomplete(reason: &str) -> Self {
        let error = serde_json::json!({"type": "search_incomplete", "reason": reason, "message": "the search did not complete"});
        Self::status(503).with_json(serde_json::json!({ "error": error }))
    }

    pub fn hang() -> Self {
        Self {
            manners: Manners::Hang,
            ..Self::status(200)
        }
    }

    pub fn reset() -> Self {
        Self {
            manners: Manners::Reset,
            ..Self::status(200)
        }
    }

    pub fn noise() -> Self {
        Self {
            manners: Manners::Noise,
            ..Self::status(200)
        }
    }

    /// Over 8 MiB of good JSON.
    pub fn huge() -> Self {
        Self::text(format!(
            "[{{\"filler\": \"{}\"}}]",
            "x".repeat(8 * 1024 * 1024)
        ))
    }

    /// A few hundred bytes that become over 8 MiB of good JSON.
    pub fn bomb() -> Self {
        let body = zstd::encode_all(Self::huge().body.as_slice(), 1).unwrap();
        Self::text(body).header("content-encoding", "zstd")
    }

    /// Says that it is compressed, and is not.
    pub fn garbled() -> Self {
        Self::text("this is no gzip").header("content-encoding", "gzip")
    }

    #[must_use]
    pub fn half_body(self) -> Self {
        Self {
            manners: Manners::HalfBody,
            ..self
        }
    }

    #[must_use]
    pub fn stalled_body(self) -> Self {
        Self {
            manners: Manners::StalledBody,
            ..self
        }
    }

    #[must_use]
    pub fn drip(self, pause: Duration) -> Self {
        Self {
            manners: Manners::Drip(pause),
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

    /// Answers this much later.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Answers once the gate is open.
    #[must_use]
    pub fn held_by(self, gate: &Gate) -> Self {
        Self {
            gate: Some(gate.clone()),
            ..self
        }
    }

    pub(super) async fn write(&self, stream: &mut TcpStream) -> io::Result<End> {
        sleep(self.delay).await;
        if let Some(gate) = &self.gate {
            gate.passed().await;
        }
        match self.manners {
            Manners::Hang => gone(stream).await,
            Manners::Reset => stream.set_zero_linger()?,
            Manners::Noise => stream.write_all(b"\x16\x03garbage\r\n\r\n").await?,
            Manners::Good => {
                stream
                    .write_all(&[self.head().as_bytes(), &self.body].concat())
                    .await?;
                return Ok(End::KeepAlive);
            }
            Manners::HalfBody | Manners::StalledBody => {
                stream
                    .write_all(
                        &[self.head().as_bytes(), &self.body[..self.body.len() / 2]].concat(),
                    )
                    .await?;
                if self.manners == Manners::StalledBody {
                    gone(stream).await;
                }
            }
            Manners::Drip(pause) => {
                stream.write_all(self.head().as_bytes()).await?;
                for byte in &self.body {
                    stream.write_all(&[*byte]).await?;
                    sleep(pause).await;
                }
                return Ok(End::KeepAlive);
            }
        }
        Ok(End::Close)
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

/// Until the client goes away.
async fn gone(stream: &mut TcpStream) {
    let mut byte = [0];
    while let Ok(1..) = tokio::io::AsyncReadExt::read(stream, &mut byte).await {}
}

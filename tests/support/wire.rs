//! A wire to Postgres that reads along: a socket which passes everything on, notes every statement that is prepared, and can put
//! another text in the place of one of them.
//!
//! It speaks the frontend's side of the protocol as far as it must: the first message has no type, all others have one. No TLS.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tempfile::TempDir;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, BufWriter,
};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// The type byte of the message that prepares a statement.
const PARSE: u8 = b'P';
/// Longer messages are a mistake here.
const LARGEST_MESSAGE: usize = 64 << 20;

/// Another text for a statement.
#[derive(Debug, Clone)]
pub struct Swap {
    pub statement: String,
    pub other: String,
}

/// A wire in use. Dropped, it is cut.
pub struct Wire {
    folder: TempDir,
    prepared: Arc<Mutex<BTreeSet<String>>>,
    server: JoinHandle<()>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Wire {
    /// A wire to where `to` leads.
    pub fn start(to: &PgConnectOptions, swap: Option<Swap>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("farescan-wire-")
            .tempdir_in("/tmp")
            .unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let prepared = Arc::new(Mutex::new(BTreeSet::new()));
        let line = Arc::new(Line {
            to: Far::of(to),
            swap,
            prepared: Arc::clone(&prepared),
        });
        let server = tokio::spawn(async move {
            // Aborted with this task, so a cut wire leaves no connection behind.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let line = Arc::clone(&line);
                connections.spawn(async move { line.pass(near).await });
            }
        });
        Self {
            folder,
            prepared,
            server,
        }
    }

    /// The same way over this wire.
    pub fn options(&self, to: &PgConnectOptions) -> PgConnectOptions {
        to.clone()
            .socket(self.folder.path())
            .port(5432)
            .ssl_mode(PgSslMode::Disable)
    }

    /// The statements that were prepared so far, as the program has them.
    pub fn prepared(&self) -> BTreeSet<String> {
        self.prepared.lock().unwrap().clone()
    }
}

/// Where the server is.
enum Far {
    Socket(PathBuf),
    Host(String, u16),
}

impl Far {
    fn of(options: &PgConnectOptions) -> Self {
        let socket =
            |folder: &Path| Self::Socket(folder.join(format!(".s.PGSQL.{}", options.get_port())));
        match options.get_socket() {
            Some(folder) => socket(folder),
            None if options.get_host().starts_with('/') => socket(Path::new(options.get_host())),
            None => Self::Host(options.get_host().to_owned(), options.get_port()),
        }
    }
}

struct Line {
    to: Far,
    swap: Option<Swap>,
    prepared: Arc<Mutex<BTreeSet<String>>>,
}

impl Line {
    /// One connection, until one of its ends closes.
    async fn pass(&self, near: UnixStream) -> io::Result<()> {
        let near = near.into_split();
        match &self.to {
            Far::Socket(path) => {
                self.join(near, UnixStream::connect(path).await?.into_split())
                    .await
            }
            Far::Host(host, port) => {
                self.join(
                    near,
                    TcpStream::connect((host.as_str(), *port))
                        .await?
                        .into_split(),
                )
                .await
            }
        }
    }

    async fn join<A, B, C, D>(
        &self,
        (near_out, mut near_in): (A, B),
        (mut far_out, far_in): (C, D),
    ) -> io::Result<()>
    where
        A: AsyncRead + Unpin,
        B: AsyncWrite + Unpin,
        C: AsyncRead + Unpin,
        D: AsyncWrite + Unpin,
    {
        tokio::select! {
            sent = self.requests(near_out, far_in) => sent,
            answered = tokio::io::copy(&mut far_out, &mut near_in) => answered.map(drop),
        }
    }

    async fn requests(
        &self,
        near: impl AsyncRead + Unpin,
        far: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let (mut near, mut far) = (BufReader::new(near), BufWriter::new(far));
        let start = message(&mut near).await?;
        write(&mut far, &start).await?;
        far.flush().await?;
        loop {
            let kind = near.read_u8().await?;
            let mut body = message(&mut near).await?;
            if kind == PARSE {
                body = self.parse(body);
            }
            far.write_u8(kind).await?;
            write(&mut far, &body).await?;
            if near.buffer().is_empty() {
                far.flush().await?;
            }
        }
    }

    /// A name, the statement, the types of its parameters; the first two end with a zero.
    fn parse(&self, body: Vec<u8>) -> Vec<u8> {
        let mut parts = body.splitn(3, |byte| *byte == 0);
        let (Some(name), Some(statement), Some(types)) = (parts.next(), parts.next(), parts.next())
        else {
            return body;
        };
        let statement = String::from_utf8_lossy(statement).into_owned();
        let other = self
            .swap
            .as_ref()
            .filter(|swap| swap.statement == statement)
            .map(|swap| swap.other.clone());
        let changed = other.map(|other| [name, &[0], other.as_bytes(), &[0], types].concat());
        self.prepared.lock().unwrap().insert(statement);
        changed.unwrap_or(body)
    }
}

/// What follows a length that counts itself.
async fn message(near: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = near.read_u32().await? as usize;
    if !(4..LARGEST_MESSAGE).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length - 4];
    near.read_exact(&mut body).await?;
    Ok(body)
}

async fn write(far: &mut (impl AsyncWrite + Unpin), body: &[u8]) -> io::Result<()> {
    far.write_u32(u32::try_from(body.len() + 4).map_err(io::Error::other)?)
        .await?;
    far.write_all(body).await
}

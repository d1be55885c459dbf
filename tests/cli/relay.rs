//! A TCP relay in front of a service: it can go away and come back, and counts what passes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

/// A relay to one service.
pub struct Relay {
    address: SocketAddr,
    target: SocketAddr,
    accepting: Mutex<Option<JoinHandle<()>>>,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    /// All bytes that clients sent.
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    /// Listens on a free port.
    pub async fn to(url: &str) -> Self {
        let target = url.strip_prefix("http://").unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Self {
            address: listener.local_addr().unwrap(),
            target,
            accepting: Mutex::new(None),
            connections: Arc::default(),
            sent: Arc::default(),
        };
        relay.accept(listener);
        relay
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Refuses connections and closes those that are open.
    pub async fn go_away(&self) {
        let accepting = self.accepting.lock().unwrap().take().unwrap();
        accepting.abort();
        // The listener is closed when the task has ended.
        drop(accepting.await);
        for connection in self.connections.lock().unwrap().drain(..) {
            connection.abort();
        }
    }

    /// Listens again at the same address.
    pub async fn come_back(&self) {
        self.accept(TcpListener::bind(self.address).await.unwrap());
    }

    /// How often clients sent a text.
    pub fn count(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.sent.lock().unwrap())
            .to_lowercase()
            .matches(text)
            .count()
    }

    fn accept(&self, listener: TcpListener) {
        let (target, connections, sent) =
            (self.target, self.connections.clone(), self.sent.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let connection = tokio::spawn(pass(client, target, sent.clone()));
                connections.lock().unwrap().push(connection.abort_handle());
            }
        });
        *self.accepting.lock().unwrap() = Some(accepting);
    }
}

/// Passes both directions until one side closes.
async fn pass(client: TcpStream, target: SocketAddr, sent: Arc<Mutex<Vec<u8>>>) {
    let Ok(service) = TcpStream::connect(target).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_service, mut to_service) = service.into_split();
    let up = async {
        let mut bytes = [0; 8192];
        while let Ok(read @ 1..) = from_client.read(&mut bytes).await {
            sent.lock().unwrap().extend_from_slice(&bytes[..read]);
            if to_service.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    };
    let down = tokio::io::copy(&mut from_service, &mut to_client);
    tokio::select! {
        () = up => {}
        _ = down => {}
    }
}

//! Ctrl-C in a client command: it ends the command with 130, except where the command handles it
//! itself.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Failure;
use super::exit::{CommandEnd, ExitStatus};

/// The parts of the command that handle Ctrl-C now.
static HANDLERS: AtomicUsize = AtomicUsize::new(0);

/// While one exists, Ctrl-C does not end the command. It gets every Ctrl-C since it was made: make
/// it before the text that offers Ctrl-C.
pub struct Handler(Signal);

impl Handler {
    pub fn new() -> std::io::Result<Self> {
        let signals = signal(SignalKind::interrupt())?;
        HANDLERS.fetch_add(1, Ordering::SeqCst);
        Ok(Self(signals))
    }

    /// Waits for Ctrl-C.
    pub async fn interrupted(&mut self) {
        self.0.recv().await;
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        HANDLERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs a command until it ends or Ctrl-C ends it.
pub async fn until_interrupted(
    command: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    tokio::select! {
        // First the command, which may have handled the signal.
        biased;
        ended = command => ended,
        interrupted = unhandled() => {
            interrupted?;
            Err(CommandEnd::silent(ExitStatus::Interrupted))
        }
    }
}

/// Returns at a Ctrl-C that no part of the command handles.
async fn unhandled() -> std::io::Result<()> {
    let mut signals = signal(SignalKind::interrupt())?;
    while signals.recv().await.is_some() {
        if HANDLERS.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
    }
    std::future::pending().await
}

//! Follows a scan to its end. Ctrl-C leaves it running.

use std::time::Duration;

use crate::Failure;
use crate::client::ServiceSession;
use crate::exit::{CommandEnd, ExitStatus};
use crate::interrupt::Handler;
use crate::progress::{self, View};
use crate::question;
use crate::wrap::note;
use farescan_contract::Scan;
use farescan_contract::ids::ScanId;
use farescan_sheets::scan::line;

/// How long a second Ctrl-C is expected.
const SECOND_SIGNAL: Duration = Duration::from_secs(3);

/// Follows a scan until it has ended or waits for its caller.
pub async fn follow(session: &ServiceSession, id: ScanId) -> Result<Scan, Failure> {
    let mut handler = Handler::new()?;
    let following = progress::follow(&session.client, id, View::of(session));
    tokio::select! {
        scan = following => Ok(scan?),
        () = handler.interrupted() => leave(session, id, handler).await,
    }
}

/// Says how to come back. A second Ctrl-C asks whether to cancel the scan.
async fn leave(
    session: &ServiceSession,
    id: ScanId,
    mut handler: Handler,
) -> Result<Scan, Failure> {
    note!(
        "\n{id} goes on without this command\n  `farescan watch {id}` shows it again, `farescan cancel {id}` ends it"
    );
    if session.screen.interactive {
        note!("  Ctrl-C again: cancel it?");
        let second = tokio::time::timeout(SECOND_SIGNAL, handler.interrupted()).await;
        if second.is_ok() {
            eprintln!();
            if question::answer("Cancel the scan? What was searched stays, and is billed.").await? {
                // From here on a Ctrl-C ends the command, also while the service does not answer.
                drop(handler);
                let path = format!("/v1/scans/{id}/cancel");
                let scan: Scan = session.client.command(&path).await?;
                note!("{}", line(&scan));
            }
        }
    }
    Err(CommandEnd::silent(ExitStatus::Interrupted))
}

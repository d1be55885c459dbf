//! Questions on the terminal. Nothing that costs is done without an answer.

use std::io::{BufRead as _, Write as _};

use tokio::sync::oneshot;

use super::Failure;
use super::exit::{CommandEnd, ExitStatus};
use super::interrupt::Handler;
use super::terminal::Screen;
use super::wrap::for_stderr;

/// How a command that costs or destroys something is confirmed.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Confirmation {
    /// Do it without the question
    #[arg(long, short)]
    pub yes: bool,
}

impl Confirmation {
    /// Asks `question`. Enter, end of input and every other answer mean no.
    ///
    /// # Errors
    /// Exit code 2 if nobody can answer and `--yes` is absent, 4 if the answer is no, 130 after
    /// Ctrl-C. Nothing was sent then.
    pub async fn ask(self, screen: Screen, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !screen.interactive {
            return Err(CommandEnd::usage(format!(
                "{question} Nobody can answer here, because this is no terminal: add --yes. Nothing was sent."
            )));
        }
        if answer(question).await? {
            Ok(())
        } else {
            Err(CommandEnd::with(ExitStatus::Refused, "nothing was sent"))
        }
    }
}

/// Asks a question on standard error. Ctrl-C ends the command with 130.
pub async fn answer(question: &str) -> Result<bool, Failure> {
    let mut handler = Handler::new()?;
    let mut err = anstream::stderr();
    write!(err, "{} ", for_stderr(&format!("{question} [y/N]")))?;
    err.flush()?;
    let (say, said) = oneshot::channel();
    // A thread of its own: the runtime would wait for a blocking task that waits for input.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        _ = say.send(read.map(|_| line));
    });
    tokio::select! {
        line = said => {
            let line = line??;
            Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
        }
        () = handler.interrupted() => {
            writeln!(err)?;
            Err(CommandEnd::silent(ExitStatus::Interrupted))
        }
    }
}

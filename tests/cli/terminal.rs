//! The program on a pseudoterminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::support::{WAIT_LIMIT, wait_until};

/// A running program with its terminal.
pub struct Terminal {
    child: Child,
    input: File,
    output: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// Starts the command with standard error and input on a terminal of this size. Standard output
    /// is on it too.
    pub fn start(command: &mut Command, columns: u16, rows: u16) -> Self {
        Self::start_with(command, columns, rows, true)
    }

    /// The same, with standard output discarded if `shows_output` is false.
    fn start_with(command: &mut Command, columns: u16, rows: u16, shows_output: bool) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&controller, size).unwrap();
        let path = ptsname(&controller, Vec::new())
            .unwrap()
            .into_string()
            .unwrap();
        let side = || {
            let file = File::options().read(true).write(true).open(&path).unwrap();
            Stdio::from(OwnedFd::from(file))
        };
        // setsid makes it the controlling terminal, from which a password is read.
        let mut session = Command::new("setsid");
        session
            .args(["--ctty", "--wait"])
            .arg(command.get_program())
            .args(command.get_args());
        session.env_clear();
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                session.env(name, value);
            }
        }
        let child = session
            .env_remove("COLUMNS")
            .stdin(side())
            .stdout(if shows_output { side() } else { Stdio::null() })
            .stderr(side())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(Vec::new()));
        let mut reader = File::from(controller.try_clone().unwrap());
        let collected = Arc::clone(&output);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The read fails when the program has closed the terminal.
            while let Ok(read) = reader.read(&mut bytes) {
                collected.lock().unwrap().extend_from_slice(&bytes[..read]);
            }
        });
        Self {
            child,
            input: File::from(controller),
            output,
            reader,
        }
    }

    /// Everything that it has shown so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    /// Waits until it has shown a text.
    pub async fn expect(&self, text: &str) {
        let end = tokio::time::Instant::now() + WAIT_LIMIT;
        while !self.shown().contains(text) {
            let is_late = tokio::time::Instant::now() > end;
            assert!(
                !is_late,
                "the terminal does not show {text:?}: {}",
                self.shown()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until typed characters are not shown.
    pub async fn wait_until_echo_is_off(&self) {
        wait_until("typed characters are not shown", async || {
            let modes = tcgetattr(&self.input).unwrap().local_modes;
            !modes.contains(LocalModes::ECHO)
        })
        .await;
    }

    /// Types a text.
    pub fn type_text(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&mut self) {
        self.type_text("\u{3}");
    }

    /// Waits for its end; returns the exit code.
    pub async fn end(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the program has ended", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        // What is still in the terminal could end within an escape sequence.
        wait_until("its output is read", async || self.reader.is_finished()).await;
        status.and_then(|status| status.code())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

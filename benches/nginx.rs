//! nginx as a reverse proxy before the same upstreams: the gateway's peer, where it is installed.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::Res;

/// A running nginx.
pub struct Nginx {
    child: Child,
    /// One for each upstream, in the same order.
    pub addresses: Vec<SocketAddr>,
}

impl Nginx {
    /// `None`: there is no nginx on this machine.
    pub async fn start(folder: &Path, upstreams: &[SocketAddr]) -> Res<Option<Self>> {
        let Some(program) = program() else {
            return Ok(None);
        };
        let addresses = upstreams
            .iter()
            .map(|_| free_address())
            .collect::<Res<Vec<_>>>()?;
        let servers: String = addresses
            .iter()
            .zip(upstreams)
            .enumerate()
            .map(|(number, (own, upstream))| server(number, *own, *upstream))
            .collect();
        let folder = folder.join("nginx");
        fs::create_dir_all(&folder)?;
        // Tuned for speed: one process for each core and persistent upstream connections. It logs
        // each request, which is its default and this program's.
        let config = format!(
            "daemon off; worker_processes auto; worker_rlimit_nofile 65536; pid {0}/pid; error_log {0}/error.log warn;
             events {{ worker_connections 16384; }}
             http {{ access_log {0}/access.log; keepalive_requests 1000000;
                     client_body_temp_path {0}/body; proxy_temp_path {0}/proxy;
                     fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
                     {servers} }}",
            folder.display()
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, config)?;
        let child = Command::new(program)
            .args([
                "-p",
                &folder.to_string_lossy(),
                "-c",
                &file.to_string_lossy(),
                "-e",
                &folder.join("error.log").to_string_lossy(),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let started = Self { child, addresses };
        for _ in 0..500 {
            if TcpStream::connect(started.addresses[0]).await.is_ok() {
                return Ok(Some(started));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Err(format!(
            "nginx does not start: {}",
            fs::read_to_string(folder.join("error.log"))?
        )
        .into())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // SIGTERM, so that it ends its workers.
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            _ = kill_process(pid, Signal::TERM);
        }
        drop(self.child.wait());
    }
}

fn server(number: usize, own: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        "upstream up{number} {{ server {upstream}; keepalive 2048; keepalive_requests 1000000; }}
         server {{ listen {own} backlog=4096; location / {{ proxy_pass http://up{number}; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}\n"
    )
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian installs it in a folder of root's path.
    let folders = std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")]);
    folders
        .map(|folder| folder.join("nginx"))
        .find(|file| file.is_file())
}

fn free_address() -> Res<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

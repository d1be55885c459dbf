//! `farescan healthcheck`: asks a process of this machine how it is, for images that have no curl.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::Failure;
use crate::config::AdminConfig;
use crate::contract::ErrorBody;

/// Longer than `/readyz` waits for the database.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Settings of `healthcheck`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    admin: AdminConfig,
    /// Ask only whether the process lives, not whether it can take stored work
    #[arg(long)]
    live: bool,
}

/// Ends well if the answer is good.
pub async fn run(args: Args) -> Result<(), Failure> {
    let address = reachable(args.admin.admin_listen.unwrap_or(AdminConfig::DEFAULT))?;
    let url = format!(
        "http://{address}{}",
        if args.live { "/healthz" } else { "/readyz" }
    );
    let http = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .build()?;
    let answer = http
        .get(&url)
        .send()
        .await
        .map_err(|error| format!("{url} does not answer: {}", innermost(&error)))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let told = answer
        .json::<ErrorBody>()
        .await
        .map(|body| body.error.message)
        .unwrap_or_default();
    Err(format!("{url} answered {status}: {told}").into())
}

/// Where a listener at `address` is reached from its own machine.
fn reachable(address: SocketAddr) -> Result<SocketAddr, Failure> {
    if address.port() == 0 {
        return Err("FARESCAN_ADMIN_LISTEN has port 0, which is a free one each time: give it a fixed port to be asked at".into());
    }
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, address.port()))
}

/// The cause that a person can act on: `Connection refused`, not the layers around it.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_asked_on_loopback() {
        for (set, asked) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:9090", "[::1]:9090"),
            ("10.0.0.7:91", "10.0.0.7:91"),
        ] {
            assert_eq!(
                reachable(set.parse().unwrap()).unwrap(),
                asked.parse().unwrap()
            );
        }
        assert!(reachable("127.0.0.1:0".parse().unwrap()).is_err());
    }
}

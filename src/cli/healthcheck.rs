//! `farescan healthcheck`: checks a process on this machine, for images without curl.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::config::AdminConfig;
use crate::contract::ErrorBody;
use farescan_client::Failure;
use farescan_client::client::root_cause;

/// Longer than `/readyz` waits for the database.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Settings of `healthcheck`.
#[derive(Debug, clap::Args)]
pub struct HealthcheckArgs {
    #[command(flatten)]
    admin: AdminConfig,
    /// Check only whether the process is alive, not whether it is ready
    #[arg(long)]
    live: bool,
}

/// Succeeds if the process answers 2xx.
pub async fn run(args: HealthcheckArgs) -> Result<(), Failure> {
    let address = local_address(args.admin.admin_listen.unwrap_or(AdminConfig::DEFAULT))?;
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
        .map_err(|error| format!("{url} does not answer: {}", root_cause(&error)))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let message = answer
        .json::<ErrorBody>()
        .await
        .map(|body| body.error.message)
        .unwrap_or_default();
    Err(format!("{url} answered {status}: {message}").into())
}

/// The address of a listener at `address` as seen from its own machine.
fn local_address(address: SocketAddr) -> Result<SocketAddr, Failure> {
    if address.port() == 0 {
        return Err("FARESCAN_ADMIN_LISTEN has port 0, which is another port at each start: a health check needs a fixed port".into());
    }
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_reached_on_loopback() {
        for (set, reached) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:9090", "[::1]:9090"),
            ("10.0.0.7:91", "10.0.0.7:91"),
        ] {
            assert_eq!(
                local_address(set.parse().unwrap()).unwrap(),
                reached.parse().unwrap()
            );
        }
        assert!(local_address("127.0.0.1:0".parse().unwrap()).is_err());
    }
}

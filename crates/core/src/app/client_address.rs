//! The network of the client that a request came from, for limits of who is not known by a key
//! (security.md, rule 33).
//!
//! It is that of the connection, or behind a named proxy the last address in `X-Forwarded-For` that
//! no named proxy has: everything before it the client may have invented.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{Extensions, HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The addresses of one IPv4 network, and of one IPv6 network: what one client commonly has.
const PREFIXES: (u8, u8) = (24, 48);

/// The two ends of a request's connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionAddresses {
    pub client: IpAddr,
    pub own: IpAddr,
}

/// The network that a request came from; `None` without a connection.
pub fn client_network(
    extensions: &Extensions,
    headers: &HeaderMap,
    proxies: &Arc<[IpNet]>,
) -> Option<IpNet> {
    let connection = extensions.get::<ConnectionAddresses>()?;
    let is_proxy = |address: &IpAddr| proxies.iter().any(|proxy| proxy.contains(address));
    let mut address = connection.client.to_canonical();
    let mut forwarded = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .rev()
        .flat_map(|value| {
            let list = value.to_str().unwrap_or_default();
            list.rsplit(',').map(|element| parse(element.trim()))
        });
    while is_proxy(&address) {
        match forwarded.next() {
            Some(Some(before)) => address = before,
            // Not an address: the proxy is all that is known.
            Some(None) | None => break,
        }
    }
    Some(network(address))
}

/// `203.0.113.9`, `2001:db8::1`, also with a port: `203.0.113.9:4711`, `[2001:db8::1]:4711`.
fn parse(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse().map(|socket: std::net::SocketAddr| socket.ip());
    let address = text.parse().or_else(|_| with_port()).ok()?;
    Some(IpAddr::to_canonical(&address))
}

fn network(address: IpAddr) -> IpNet {
    let prefix = match address {
        IpAddr::V4(_) => PREFIXES.0,
        IpAddr::V6(_) => PREFIXES.1,
    };
    IpNet::new(address, prefix).map_or_else(|_| address.into(), |network| network.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network_of(client: &str, forwarded: &[&'static str], proxies: &[&str]) -> String {
        let mut extensions = Extensions::new();
        extensions.insert(ConnectionAddresses {
            client: client.parse().unwrap(),
            own: client.parse().unwrap(),
        });
        let headers = forwarded.iter().map(|list| {
            let value = axum::http::HeaderValue::from_static(list);
            (FORWARDED_FOR, value)
        });
        let headers = headers.fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(name, value);
            headers
        });
        let proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
        client_network(&extensions, &headers, &proxies)
            .unwrap()
            .to_string()
    }

    #[test]
    fn only_a_named_proxy_is_believed() {
        let (proxy, chain) = (&["10.0.0.0/8"][..], &["10.0.0.0/8", "192.0.2.0/24"][..]);
        for (client, forwarded, proxies, expected) in [
            (
                "203.0.113.9",
                &["198.51.100.7"][..],
                &[][..],
                "203.0.113.0/24",
            ),
            ("203.0.113.9", &["198.51.100.7"], proxy, "203.0.113.0/24"),
            ("10.1.2.3", &["198.51.100.7"], proxy, "198.51.100.0/24"),
            (
                "10.1.2.3",
                &["1.1.1.1, 198.51.100.7"],
                proxy,
                "198.51.100.0/24",
            ),
            (
                "10.1.2.3",
                &["1.1.1.1", "198.51.100.7"],
                proxy,
                "198.51.100.0/24",
            ),
            (
                "10.1.2.3",
                &["198.51.100.7, 192.0.2.5"],
                chain,
                "198.51.100.0/24",
            ),
            ("10.1.2.3", &["198.51.100.7:4711"], proxy, "198.51.100.0/24"),
            (
                "10.1.2.3",
                &["[2001:db8:1:2::3]:9"],
                proxy,
                "2001:db8:1::/48",
            ),
            ("10.1.2.3", &["198.51.100.7, unknown"], proxy, "10.1.2.0/24"),
            ("10.1.2.3", &[], proxy, "10.1.2.0/24"),
            (
                "::ffff:10.1.2.3",
                &["198.51.100.7"],
                proxy,
                "198.51.100.0/24",
            ),
            ("2001:db8:1:2::3", &[], proxy, "2001:db8:1::/48"),
        ] {
            let found = network_of(client, forwarded, proxies);
            assert_eq!(found, expected, "{client} {forwarded:?} {proxies:?}");
        }
    }
}

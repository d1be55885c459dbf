//! The identity of a marketplace: a text that says whose prices a database holds.

use std::fmt;
use std::sync::Arc;

use reqwest::Url;

/// A marketplace, identified by the engines' URLs and, if configured, the values of the host
/// headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marketplace(Arc<str>);

/// A simulator that a process starts for itself, on a random port.
const SANDBOX: &str = "sandbox";

impl Marketplace {
    /// The process's own simulator.
    pub(super) fn sandbox() -> Self {
        Self(SANDBOX.into())
    }

    /// Each engine is a URL and an optional value of the host header.
    pub(super) fn at(flights: (&Url, Option<&str>), hotels: (&Url, Option<&str>)) -> Self {
        let engine = |(url, host): (&Url, Option<&str>)| {
            let url = url.as_str().trim_end_matches('/').to_owned();
            host.map_or_else(|| url.clone(), |host| format!("{url} (host {host})"))
        };
        Self(format!("flights {}, hotels {}", engine(flights), engine(hotels)).into())
    }

    /// The stored and displayed form. Holds no secrets: the URLs have neither user name nor query.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the prices are simulated.
    pub fn is_sandbox(&self) -> bool {
        *self.0 == *SANDBOX
    }
}

impl fmt::Display for Marketplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(flights: &str, hotels: &str, host: Option<&str>) -> String {
        Marketplace::at(
            (&flights.parse().unwrap(), host),
            (&hotels.parse().unwrap(), None),
        )
        .to_string()
    }

    #[test]
    fn equivalent_urls_are_one_marketplace() {
        let plain = at(
            "https://flights.example",
            "https://hotels.example/prefix",
            None,
        );
        assert_eq!(
            plain,
            "flights https://flights.example, hotels https://hotels.example/prefix"
        );
        assert_eq!(
            at(
                "HTTPS://Flights.Example:443/",
                "https://hotels.example/prefix/",
                None
            ),
            plain
        );
    }

    #[test]
    fn other_hosts_ports_prefixes_or_headers_differ() {
        let all = [
            at("https://a.example", "https://a.example", None),
            at("https://a.example:8443", "https://a.example", None),
            at("https://a.example/v2", "https://a.example", None),
            at("http://a.example", "https://a.example", None),
            at("https://a.example", "https://b.example", None),
            at(
                "https://a.example",
                "https://a.example",
                Some("fares.example"),
            ),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
        assert!(!all.contains(&Marketplace::sandbox().to_string()));
    }
}

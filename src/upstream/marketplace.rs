//! Which marketplace is asked: one text, by which a database knows whose prices it holds.

use std::fmt;
use std::sync::Arc;

use reqwest::Url;

/// A marketplace. Two are the same if their texts are: addresses of the engines and, where they are set apart, what the host headers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marketplace(Arc<str>);

/// The simulator that a process starts for itself, at another port each time.
const SANDBOX: &str = "sandbox";

impl Marketplace {
    /// The simulator of a process's own.
    pub(super) fn sandbox() -> Self {
        Self(SANDBOX.into())
    }

    /// The engines at these addresses; with the host of the host header where that was set.
    pub(super) fn at(flights: (&Url, Option<&str>), hotels: (&Url, Option<&str>)) -> Self {
        let engine = |(url, host): (&Url, Option<&str>)| {
            let url = url.as_str().trim_end_matches('/').to_owned();
            host.map_or_else(|| url.clone(), |host| format!("{url} (host {host})"))
        };
        Self(format!("flights {}, hotels {}", engine(flights), engine(hotels)).into())
    }

    /// Its text, as it is stored and shown. Holds no secret: the addresses have neither user nor query.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether its prices are invented.
    #[must_use]
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
    fn two_spellings_of_one_address_are_one_marketplace() {
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
    fn another_host_port_prefix_or_host_header_is_another_marketplace() {
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

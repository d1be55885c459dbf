//! Where a receiver may be: https on port 443, at public addresses alone (security.md, "Outgoing and pages").
//!
//! A URL is checked when it is given, and again at each try. A name is looked up once a try, by [`Checked`], inside the connection's own
//! look-up: what is connected to is what was checked, so a name that changes its address between the two cannot get in.
//!
//! `FARESCAN_WEBHOOKS_ALLOW_INSECURE` opens http, every port, and 127.0.0.1 and `::1`; nothing else of what is refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::addresses::is_public;
use crate::config::WebhookConfig;
use crate::contract::Fault;

/// The most addresses of one name that are looked at, and connected to.
const MAX_ADDRESSES: usize = 32;
/// The longest URL, in bytes.
const MAX_URL: usize = 2_000;

/// Says where a receiver may be.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    allow_insecure: bool,
}

/// Why a receiver is not called. Says nothing of the URL, which may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It cannot be a webhook at all.
    #[error("not a URL that a webhook can have")]
    Url,
    /// An address in the URL that is not public.
    #[error("an address that is not public")]
    Address,
    /// A name without an address, or with one that is not public.
    #[error("a name without a public address")]
    Unresolved,
}

impl Guard {
    /// As the operator has set it.
    #[must_use]
    pub fn new(config: &WebhookConfig) -> Self {
        Self {
            allow_insecure: config.webhooks_allow_insecure,
        }
    }

    /// The URL of a webhook, checked as far as it can be without looking up its name.
    ///
    /// # Errors
    /// [`Refused::Url`] and [`Refused::Address`].
    pub fn check(self, url: &str) -> Result<Url, Refused> {
        let is_plain = url.len() <= MAX_URL && url.bytes().all(|byte| byte.is_ascii_graphic());
        let url = Url::parse(url)
            .ok()
            .filter(|_| is_plain)
            .ok_or(Refused::Url)?;
        let is_bare =
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        let is_allowed = match url.scheme() {
            "https" => url.port().is_none() || self.allow_insecure,
            "http" => self.allow_insecure,
            _ => false,
        };
        let host = url
            .host_str()
            .filter(|host| is_bare && is_allowed && !host.is_empty())
            .ok_or(Refused::Url)?;
        // Numbers of every form (0x7f.1, 2130706433) are an address already, in the usual form.
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) if !self.admits(address) => Err(Refused::Address),
            _ => Ok(url),
        }
    }

    /// The same for a field of a request. The URL is not shown: it may hold a secret.
    ///
    /// # Errors
    /// A fault of the field.
    pub fn check_field(self, field: &str, url: &str) -> Result<(), Fault> {
        let allowed = if self.allow_insecure {
            "an http or https URL of at most 2,000 characters, whose host is public or loopback; no user name, no fragment"
        } else {
            "an https URL on port 443 of at most 2,000 characters, whose host is public; no user name, no fragment"
        };
        self.check(url)
            .map(drop)
            .map_err(|_| Fault::secret(field, allowed))
    }

    /// Whether a connection may go there.
    #[must_use]
    pub fn admits(self, address: IpAddr) -> bool {
        // Not the whole of 127.0.0.0/8: what else listens there did not ask to be reached.
        let is_loopback = address == IpAddr::V4(Ipv4Addr::LOCALHOST)
            || address == IpAddr::V6(Ipv6Addr::LOCALHOST);
        is_public(address) || self.allow_insecure && is_loopback
    }

    /// Whether only https may be spoken.
    pub(super) fn is_strict(self) -> bool {
        !self.allow_insecure
    }
}

/// The host of a webhook's URL as tries in flight are counted by it: however it is written, one host is one.
pub(super) fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.host_str()
        .map(|host| host.trim_end_matches('.').to_ascii_lowercase())
}

/// Looks names up, and lets addresses through only if all of them are admitted.
#[derive(Clone)]
pub(super) struct Checked {
    pub(super) guard: Guard,
    pub(super) names: Arc<dyn Resolve>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, found) = (self.guard, self.names.resolve(name));
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = found
                .await
                .map_err(|_| Refused::Unresolved)?
                .take(MAX_ADDRESSES)
                .collect();
            // One word for both: whoever asks does not learn which names there are in the network of this service.
            if addresses.is_empty() || !addresses.iter().all(|address| guard.admits(address.ip())) {
                return Err(Refused::Unresolved.into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

/// The names of this machine and its network.
#[derive(Debug)]
pub(super) struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The port is the URL's.
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Guard = Guard {
        allow_insecure: false,
    };
    const OPEN: Guard = Guard {
        allow_insecure: true,
    };

    #[test]
    fn https_on_443_at_a_name_or_a_public_address() {
        for url in [
            "https://hooks.example.com/fares?token=1",
            "https://hooks.example.com:443/",
            "HTTPS://Hooks.Example.COM",
            "https://8.8.8.8/x",
            "https://[2606:4700:4700::1111]/x",
        ] {
            assert!(STRICT.check(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_no_webhook_can_have() {
        let long = format!("https://hooks.example.com/{}", "x".repeat(MAX_URL));
        for url in [
            "http://hooks.example.com/",
            "https://hooks.example.com:8443/",
            "https://me:secret@hooks.example.com/",
            "https://me@hooks.example.com/",
            "https://hooks.example.com/#part",
            "https://",
            "ftp://hooks.example.com/",
            "file:///etc/passwd",
            "gopher://hooks.example.com/",
            "hooks.example.com",
            "",
            " https://hooks.example.com/",
            "https://hooks.example.com/a b",
            "https://hooks.example.com/\n",
            "https://hooks.exämple.com/",
            &long,
        ] {
            assert_eq!(STRICT.check(url).unwrap_err(), Refused::Url, "{url}");
        }
        assert!(OPEN.check("http://127.0.0.1:9/").is_ok() && OPEN.check("http://[::1]:9/").is_ok());
        for url in [
            "ftp://hooks.example.com/",
            "http://me@hooks.example.com/",
            "http:///",
        ] {
            assert_eq!(OPEN.check(url).unwrap_err(), Refused::Url, "{url}");
        }
    }

    #[test]
    fn an_address_that_is_not_public_in_every_way_to_write_it() {
        for host in [
            "127.0.0.1",
            "127.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.1.",
            "0",
            "10.0.0.1",
            "169.254.169.254",
            "0xa9fea9fe",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "[fe80::1]",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
        ] {
            let refused = STRICT.check(&format!("https://{host}/")).unwrap_err();
            assert_eq!(
                refused,
                if host.is_ascii() {
                    Refused::Address
                } else {
                    Refused::Url
                },
                "{host}"
            );
        }
        for host in [
            "127.0.0.2",
            "10.0.0.1",
            "169.254.169.254",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
        ] {
            assert_eq!(
                OPEN.check(&format!("http://{host}:80/")).unwrap_err(),
                Refused::Address,
                "{host}"
            );
        }
    }

    #[test]
    fn a_host_is_one_however_it_is_written() {
        for url in [
            "https://Hooks.Example.com/a",
            "https://hooks.example.com:8443/b?c",
            "https://%68ooks.example.com./",
            "http://hooks.example.com",
        ] {
            assert_eq!(host(url).as_deref(), Some("hooks.example.com"), "{url}");
        }
        assert_eq!(host("http://[::1]:9/").as_deref(), Some("[::1]"));
        assert_eq!(host("no URL"), None);
    }

    #[test]
    fn the_fault_shows_nothing_of_the_url() {
        let fault = STRICT
            .check_field("webhook_url", "http://hooks.example.com/?token=hunter2")
            .unwrap_err()
            .to_string();
        assert!(
            fault.starts_with(
                "`webhook_url` holds a value that is not shown; allowed: an https URL"
            ),
            "{fault}"
        );
    }
}

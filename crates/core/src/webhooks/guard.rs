//! Which receivers are allowed: https on port 443, at public addresses only (security.md, rule 25).
//!
//! A URL is checked when it is set and again at each try. [`GuardedResolver`] resolves a name once
//! per try, as the resolver of the connection: the checked address is the connected one, which
//! prevents DNS rebinding.
//!
//! `FARESCAN_WEBHOOKS_ALLOW_INSECURE` additionally allows http, every port, 127.0.0.1 and `::1`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::addresses::is_public;
use crate::config::WebhookConfig;
use crate::contract::channels::ChannelKind;
use crate::contract::{FieldValue as _, ValidationError};

/// The most addresses of one name that are checked and used.
const MAX_ADDRESSES: usize = 32;
/// The longest URL, in bytes.
const MAX_URL: usize = 2_000;

/// Decides which receivers are allowed.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    allow_insecure: bool,
    has_mail: bool,
    has_relay: bool,
}

/// Why a receiver is refused. Does not contain the URL, which may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The URL is not allowed for a webhook.
    #[error("the URL is not allowed for a webhook")]
    Url,
    /// The URL contains an address that is not public.
    #[error("the address is not public")]
    Address,
    /// The name has no address, or one that is not public.
    #[error("the name has no public address")]
    Unresolved,
}

impl Guard {
    /// The guard of a configuration.
    pub fn new(config: &WebhookConfig) -> Self {
        Self {
            allow_insecure: config.webhooks_allow_insecure,
            has_mail: false,
            has_relay: false,
        }
    }

    /// The same guard where the operator has set up a mail server, or has not.
    #[must_use]
    pub fn with_mail(self, has_mail: bool) -> Self {
        Self { has_mail, ..self }
    }

    /// The same guard where the operator has set up a relay, or has not.
    #[must_use]
    pub fn with_relay(self, has_relay: bool) -> Self {
        Self { has_relay, ..self }
    }

    /// Checks that the operator has set up what a kind of channels needs.
    ///
    /// # Errors
    /// An error of the field `kind`.
    pub fn check_kind(self, kind: ChannelKind) -> Result<(), ValidationError> {
        let expected = match kind {
            ChannelKind::Email if !self.has_mail => {
                "another kind: the operator of this service has set up no mail server (FARESCAN_SMTP_URL and FARESCAN_SMTP_FROM)"
            }
            ChannelKind::Apprise if !self.has_relay => {
                "another kind: the operator of this service has set up no relay (FARESCAN_APPRISE_URL)"
            }
            _ => return Ok(()),
        };
        Err(ValidationError::new("kind", &kind.to_value(), expected))
    }

    /// Checks the URL of a webhook, without resolving its name.
    ///
    /// # Errors
    /// [`GuardError::Url`] and [`GuardError::Address`].
    pub fn check(self, url: &str) -> Result<Url, GuardError> {
        let is_plain = url.len() <= MAX_URL && url.bytes().all(|byte| byte.is_ascii_graphic());
        let url = Url::parse(url)
            .ok()
            .filter(|_| is_plain)
            .ok_or(GuardError::Url)?;
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
            .ok_or(GuardError::Url)?;
        // The URL parser has normalised numeric addresses of every form (0x7f.1, 2130706433).
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) if !self.admits(address) => Err(GuardError::Address),
            _ => Ok(url),
        }
    }

    /// [`Guard::check`] for a field of a request. The error does not show the URL: it may hold a
    /// secret.
    ///
    /// # Errors
    /// An error of the field.
    pub fn check_field(self, field: &str, url: &str) -> Result<(), ValidationError> {
        let insecure = Self {
            allow_insecure: true,
            ..self
        };
        let expected = if self.allow_insecure {
            "an http or https URL of at most 2,000 characters, whose host is public or loopback; no user name, no fragment"
        } else if insecure.check(url).is_ok() {
            "an https URL on port 443, whose host is public; a service on which things are tried out takes http, other ports and 127.0.0.1 with FARESCAN_WEBHOOKS_ALLOW_INSECURE=true"
        } else {
            "an https URL on port 443 of at most 2,000 characters, whose host is public; no user name, no fragment"
        };
        self.check(url)
            .map(drop)
            .map_err(|_| ValidationError::secret(field, expected))
    }

    /// Whether a connection to the address is allowed.
    pub fn admits(self, address: IpAddr) -> bool {
        // Not the whole of 127.0.0.0/8: other services may listen there.
        let is_loopback = address == IpAddr::V4(Ipv4Addr::LOCALHOST)
            || address == IpAddr::V6(Ipv6Addr::LOCALHOST);
        is_public(address) || self.allow_insecure && is_loopback
    }

    /// Whether only https is allowed.
    pub(super) fn is_strict(self) -> bool {
        !self.allow_insecure
    }
}

/// The normalised host of a webhook's URL, by which tries in flight are counted.
pub(super) fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.host_str()
        .map(|host| host.trim_end_matches('.').to_ascii_lowercase())
}

/// Resolves names, and fails unless the guard admits all addresses.
#[derive(Clone)]
pub(super) struct GuardedResolver {
    pub(super) guard: Guard,
    pub(super) resolver: Arc<dyn Resolve>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, found) = (self.guard, self.resolver.resolve(name));
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = found
                .await
                .map_err(|_| GuardError::Unresolved)?
                .take(MAX_ADDRESSES)
                .collect();
            // One error for both cases: it must not reveal which names exist in the service's
            // network.
            if addresses.is_empty() || !addresses.iter().all(|address| guard.admits(address.ip())) {
                return Err(GuardError::Unresolved.into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedResolver")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

/// The resolver of the operating system.
#[derive(Debug)]
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The URL supplies the port.
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
        has_mail: false,
        has_relay: false,
    };
    const OPEN: Guard = Guard {
        allow_insecure: true,
        has_mail: false,
        has_relay: false,
    };

    #[test]
    fn https_on_443_at_a_public_address_is_allowed() {
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
    fn urls_that_no_webhook_may_have_are_refused() {
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
            assert_eq!(STRICT.check(url).unwrap_err(), GuardError::Url, "{url}");
        }
        assert!(OPEN.check("http://127.0.0.1:9/").is_ok() && OPEN.check("http://[::1]:9/").is_ok());
        for url in [
            "ftp://hooks.example.com/",
            "http://me@hooks.example.com/",
            "http:///",
        ] {
            assert_eq!(OPEN.check(url).unwrap_err(), GuardError::Url, "{url}");
        }
    }

    #[test]
    fn a_private_address_is_refused_in_every_notation() {
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
                    GuardError::Address
                } else {
                    GuardError::Url
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
                GuardError::Address,
                "{host}"
            );
        }
    }

    #[test]
    fn a_host_is_normalised() {
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
    fn the_error_does_not_show_the_url() {
        let error = STRICT
            .check_field("webhook_url", "http://hooks.example.com/?token=hunter2")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(
                "`webhook_url`: found a value that is not shown; expected an https URL"
            ),
            "{error}"
        );
    }
}

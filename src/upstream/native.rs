//! Where the marketplace is and how its own interface is spelled: paths, header names, hosts. All of it is configuration
//! (contract, "Upstream").
//!
//! Here: [`UpstreamConfig`] (the settings) and `Native` (the settings, checked). Not here: sending (`client`).

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use super::Marketplace;
use crate::contract::{Api, Endpoint};

/// How the marketplace is reached. `.env.example` has a preset for the real listing.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Marketplace")]
pub struct UpstreamConfig {
    /// The flights engine: scheme, host and, where there is one, a path prefix.
    #[arg(long, env = "FARESCAN_FLIGHTS_URL", value_name = "URL")]
    pub flights_url: Option<Url>,
    /// The hotels engine.
    #[arg(long, env = "FARESCAN_HOTELS_URL", value_name = "URL")]
    pub hotels_url: Option<Url>,
    /// What the host header says for flights; otherwise the URL's host.
    #[arg(long, env = "FARESCAN_FLIGHTS_HOST", value_name = "HOST")]
    pub flights_host: Option<String>,
    /// What the host header says for hotels; otherwise the URL's host.
    #[arg(long, env = "FARESCAN_HOTELS_HOST", value_name = "HOST")]
    pub hotels_host: Option<String>,
    /// The header that carries the caller's key to the marketplace.
    #[arg(long, env = "FARESCAN_UPSTREAM_KEY_HEADER", value_name = "NAME", default_value = KEY_HEADER)]
    pub upstream_key_header: HeaderName,
    /// The header that tells the marketplace which API is meant.
    #[arg(long, env = "FARESCAN_UPSTREAM_HOST_HEADER", value_name = "NAME", default_value = HOST_HEADER)]
    pub upstream_host_header: HeaderName,
    /// Native path of one-way searches.
    #[arg(long, env = "FARESCAN_FLIGHTS_ONEWAY_PATH", value_name = "PATH", default_value = ONEWAY_PATH)]
    pub flights_oneway_path: String,
    /// Native path of round-trip searches.
    #[arg(long, env = "FARESCAN_FLIGHTS_ROUNDTRIP_PATH", value_name = "PATH", default_value = ROUNDTRIP_PATH)]
    pub flights_roundtrip_path: String,
    /// Native path of hotel searches.
    #[arg(long, env = "FARESCAN_HOTELS_SEARCH_PATH", value_name = "PATH", default_value = SEARCH_PATH)]
    pub hotels_search_path: String,
    /// Native path of a hotel by its name.
    #[arg(long, env = "FARESCAN_HOTELS_BY_NAME_PATH", value_name = "PATH", default_value = BY_NAME_PATH)]
    pub hotels_by_name_path: String,
    /// Native path of a hotel's rooms.
    #[arg(long, env = "FARESCAN_HOTELS_ROOMS_PATH", value_name = "PATH", default_value = ROOMS_PATH)]
    pub hotels_rooms_path: String,
    /// Native path that resolves a hotel's name.
    #[arg(long, env = "FARESCAN_HOTELS_RESOLVE_PATH", value_name = "PATH", default_value = RESOLVE_PATH)]
    pub hotels_resolve_path: String,
    /// Seconds for one search, the second try of a server error included (contract 18).
    #[arg(long, env = "FARESCAN_SEARCH_TIMEOUT_SECONDS", value_name = "SECONDS", default_value = "180", value_parser = seconds)]
    pub search_timeout_seconds: Duration,
    /// Lets the marketplace be at http beyond this machine: keys go over the network as they are. For a simulator in a network of its own
    #[arg(long, env = "FARESCAN_UPSTREAM_ALLOW_HTTP")]
    pub upstream_allow_http: bool,
    /// The addresses are those of a simulator that this process has started.
    #[arg(skip)]
    pub is_sandbox: bool,
}

const KEY_HEADER: &str = "x-marketplace-key";
const HOST_HEADER: &str = "x-marketplace-host";
const ONEWAY_PATH: &str = "/api/google_flights/oneway/v1";
const ROUNDTRIP_PATH: &str = "/api/google_flights/roundtrip/v1";
const SEARCH_PATH: &str = "/search";
const BY_NAME_PATH: &str = "/hotel_by_name";
const ROOMS_PATH: &str = "/hotel";
const RESOLVE_PATH: &str = "/resolve";
/// The whole time for one search (contract 18).
const SEARCH_TIMEOUT: Duration = Duration::from_secs(180);
/// The longest that may be configured: beyond it a caller's own patience is the bound.
const LONGEST_TIMEOUT_SECONDS: f64 = 3600.0;

/// A setting that cannot be used, with the variable that sets it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// Nothing says where an engine is.
    #[error(
        "{0} is not set: set it to the marketplace's URL, or try things on a simulated marketplace with `farescan serve --sandbox`"
    )]
    Missing(&'static str),
    /// A setting that is not what it must be.
    #[error("{variable} holds `{held}`; allowed: {allowed}")]
    Unusable {
        /// The environment variable.
        variable: &'static str,
        /// What it held.
        held: String,
        /// What it may hold.
        allowed: &'static str,
    },
    /// The system's certificate roots could not be read.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

impl UpstreamConfig {
    /// A marketplace with the default paths and header names at these addresses: the sandbox, a test's.
    #[must_use]
    pub fn at(flights: Url, hotels: Url) -> Self {
        Self {
            flights_url: Some(flights),
            hotels_url: Some(hotels),
            flights_host: None,
            hotels_host: None,
            upstream_key_header: HeaderName::from_static(KEY_HEADER),
            upstream_host_header: HeaderName::from_static(HOST_HEADER),
            flights_oneway_path: ONEWAY_PATH.to_owned(),
            flights_roundtrip_path: ROUNDTRIP_PATH.to_owned(),
            hotels_search_path: SEARCH_PATH.to_owned(),
            hotels_by_name_path: BY_NAME_PATH.to_owned(),
            hotels_rooms_path: ROOMS_PATH.to_owned(),
            hotels_resolve_path: RESOLVE_PATH.to_owned(),
            search_timeout_seconds: SEARCH_TIMEOUT,
            upstream_allow_http: false,
            is_sandbox: false,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let allowed = || format!("a number of seconds above 0 and up to {LONGEST_TIMEOUT_SECONDS}");
    let seconds: f64 = text.parse().map_err(|_| allowed())?;
    let usable = seconds > 0.0 && seconds <= LONGEST_TIMEOUT_SECONDS;
    if usable {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(allowed())
    }
}

/// The marketplace's own interface, checked.
#[derive(Debug, Clone)]
pub(super) struct Native {
    pub(super) marketplace: Marketplace,
    pub(super) key_header: HeaderName,
    pub(super) host_header: HeaderName,
    flights_host: HeaderValue,
    hotels_host: HeaderValue,
    oneway: Url,
    roundtrip: Url,
    search: Url,
    by_name: Url,
    rooms: Url,
    resolve: Url,
}

impl Native {
    pub(super) fn new(config: &UpstreamConfig) -> Result<Self, ConfigFault> {
        let allow_http = config.upstream_allow_http;
        let flights = engine(
            "FARESCAN_FLIGHTS_URL",
            config.flights_url.as_ref(),
            allow_http,
        )?;
        let hotels = engine(
            "FARESCAN_HOTELS_URL",
            config.hotels_url.as_ref(),
            allow_http,
        )?;
        let marketplace = if config.is_sandbox {
            Marketplace::sandbox()
        } else {
            Marketplace::at(
                (flights, config.flights_host.as_deref()),
                (hotels, config.hotels_host.as_deref()),
            )
        };
        Ok(Self {
            marketplace,
            key_header: config.upstream_key_header.clone(),
            host_header: config.upstream_host_header.clone(),
            flights_host: host(
                "FARESCAN_FLIGHTS_HOST",
                config.flights_host.as_deref(),
                flights,
            )?,
            hotels_host: host(
                "FARESCAN_HOTELS_HOST",
                config.hotels_host.as_deref(),
                hotels,
            )?,
            oneway: native(
                flights,
                "FARESCAN_FLIGHTS_ONEWAY_PATH",
                &config.flights_oneway_path,
            )?,
            roundtrip: native(
                flights,
                "FARESCAN_FLIGHTS_ROUNDTRIP_PATH",
                &config.flights_roundtrip_path,
            )?,
            search: native(
                hotels,
                "FARESCAN_HOTELS_SEARCH_PATH",
                &config.hotels_search_path,
            )?,
            by_name: native(
                hotels,
                "FARESCAN_HOTELS_BY_NAME_PATH",
                &config.hotels_by_name_path,
            )?,
            rooms: native(
                hotels,
                "FARESCAN_HOTELS_ROOMS_PATH",
                &config.hotels_rooms_path,
            )?,
            resolve: native(
                hotels,
                "FARESCAN_HOTELS_RESOLVE_PATH",
                &config.hotels_resolve_path,
            )?,
        })
    }

    /// Where an endpoint is.
    pub(super) fn url(&self, endpoint: Endpoint) -> &Url {
        match endpoint {
            Endpoint::FlightsOneway => &self.oneway,
            Endpoint::FlightsRoundtrip => &self.roundtrip,
            Endpoint::HotelsSearch => &self.search,
            Endpoint::HotelsByName => &self.by_name,
            Endpoint::HotelsRooms => &self.rooms,
            Endpoint::HotelsResolve => &self.resolve,
        }
    }

    /// What the host header says.
    pub(super) fn host(&self, api: Api) -> &HeaderValue {
        match api {
            Api::Flights => &self.flights_host,
            Api::Hotels => &self.hotels_host,
        }
    }
}

fn engine<'a>(
    variable: &'static str,
    url: Option<&'a Url>,
    allow_http: bool,
) -> Result<&'a Url, ConfigFault> {
    let url = url.ok_or(ConfigFault::Missing(variable))?;
    let bare = url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    let is_http = url.scheme() == "http";
    // The URL is not shown whole: a user name, password or query in it may be a secret.
    let held = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    if !bare || !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(ConfigFault::Unusable {
            variable,
            held,
            allowed: "an http or https URL without user name, query or fragment",
        });
    }
    if is_http && !allow_http && !is_loopback(url) {
        let allowed = "an https URL, since each call carries a key; http only to this machine (127.0.0.1, [::1], localhost), or anywhere with \
                       FARESCAN_UPSTREAM_ALLOW_HTTP=true";
        return Err(ConfigFault::Unusable {
            variable,
            held,
            allowed,
        });
    }
    Ok(url)
}

/// Whether what is sent there stays on this machine. A name that resolves to it does not count: names can be changed.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn native(engine: &Url, variable: &'static str, path: &str) -> Result<Url, ConfigFault> {
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['?', '#']);
    if !path.starts_with('/') || !plain {
        let allowed = "a path that begins with / and has no white space, query or fragment";
        return Err(ConfigFault::Unusable {
            variable,
            held: path.to_owned(),
            allowed,
        });
    }
    let mut url = engine.clone();
    url.set_path(&format!("{}{path}", engine.path().trim_end_matches('/')));
    Ok(url)
}

fn host(
    variable: &'static str,
    set: Option<&str>,
    engine: &Url,
) -> Result<HeaderValue, ConfigFault> {
    let host = set.or(engine.host_str()).unwrap_or_default();
    let usable = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
    let unusable = || ConfigFault::Unusable {
        variable,
        held: host.to_owned(),
        allowed: "a host name",
    };
    if usable {
        HeaderValue::from_str(host).map_err(|_| unusable())
    } else {
        Err(unusable())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        upstream: UpstreamConfig,
    }

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn config() -> UpstreamConfig {
        UpstreamConfig::at(
            url("https://flights.example"),
            url("https://hotels.example:8443/prefix/"),
        )
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let line = [
            "farescan",
            "--flights-url",
            "https://flights.example",
            "--hotels-url",
            "https://hotels.example:8443/prefix/",
        ];
        let parsed = Line::parse_from(line).upstream;
        assert_eq!(format!("{parsed:?}"), format!("{:?}", config()));
        assert_eq!(parsed.search_timeout_seconds, Duration::from_secs(180));
        let native = Native::new(&parsed).unwrap();
        let rows = [
            (
                Endpoint::FlightsOneway,
                "https://flights.example/api/google_flights/oneway/v1",
            ),
            (
                Endpoint::FlightsRoundtrip,
                "https://flights.example/api/google_flights/roundtrip/v1",
            ),
            (
                Endpoint::HotelsSearch,
                "https://hotels.example:8443/prefix/search",
            ),
            (
                Endpoint::HotelsByName,
                "https://hotels.example:8443/prefix/hotel_by_name",
            ),
            (
                Endpoint::HotelsRooms,
                "https://hotels.example:8443/prefix/hotel",
            ),
            (
                Endpoint::HotelsResolve,
                "https://hotels.example:8443/prefix/resolve",
            ),
        ];
        for (endpoint, expected) in rows {
            assert_eq!(native.url(endpoint).as_str(), expected);
        }
        assert_eq!(
            (native.key_header.as_str(), native.host_header.as_str()),
            ("x-marketplace-key", "x-marketplace-host")
        );
        assert_eq!(
            (native.host(Api::Flights), native.host(Api::Hotels)),
            (
                &"flights.example".parse().unwrap(),
                &"hotels.example".parse().unwrap()
            )
        );
    }

    #[test]
    fn keys_go_in_the_clear_to_this_machine_alone_unless_set() {
        for (address, is_taken) in [
            ("http://127.0.0.1:8090", true),
            ("http://[::1]:8090", true),
            ("http://localhost", true),
            ("http://sandbox:8090", false),
            ("http://10.0.0.1", false),
            ("http://127.0.0.1.example", false),
            ("https://market.example", true),
        ] {
            let mut config = UpstreamConfig::at(url(address), url(address));
            let made = Native::new(&config);
            assert_eq!(made.is_ok(), is_taken, "{address}");
            if let Err(fault) = made {
                let text = fault.to_string();
                assert!(
                    text.starts_with("FARESCAN_FLIGHTS_URL holds `http://")
                        && text.contains("FARESCAN_UPSTREAM_ALLOW_HTTP"),
                    "{text}"
                );
            }
            config.upstream_allow_http = true;
            assert!(Native::new(&config).is_ok(), "{address}");
        }
    }

    #[test]
    fn a_host_that_is_set_outranks_the_urls() {
        let mut config = config();
        config.flights_host = Some("fares.listing.example".into());
        config.hotels_host = Some("stays.listing.example".into());
        let native = Native::new(&config).unwrap();
        assert_eq!(native.host(Api::Flights), "fares.listing.example");
        assert_eq!(native.host(Api::Hotels), "stays.listing.example");
    }

    #[test]
    fn an_engine_without_an_address_names_its_variable_and_the_sandbox() {
        let (mut no_flights, mut no_hotels) = (config(), config());
        no_flights.flights_url = None;
        no_hotels.hotels_url = None;
        for (config, variable) in [
            (no_flights, "FARESCAN_FLIGHTS_URL"),
            (no_hotels, "FARESCAN_HOTELS_URL"),
        ] {
            let fault = Native::new(&config).unwrap_err();
            assert_eq!(fault, ConfigFault::Missing(variable));
            assert!(fault.to_string().contains("--sandbox"), "{fault}");
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_refused() {
        for bad in [
            "ftp://h.example",
            "https://user@h.example",
            "https://:pw@h.example",
            "https://h.example?q=1",
            "https://h.example#f",
        ] {
            let mut config = config();
            config.flights_url = Some(url(bad));
            let fault = Native::new(&config).unwrap_err().to_string();
            assert!(
                fault.starts_with("FARESCAN_FLIGHTS_URL holds `")
                    && !fault.contains("pw")
                    && !fault.contains("user@"),
                "{fault}"
            );
        }
        for bad in ["search", "", "/a b", "/a?b", "/a#b", "/ä"] {
            let mut config = config();
            config.hotels_search_path = bad.into();
            let fault = Native::new(&config).unwrap_err().to_string();
            assert!(
                fault.starts_with(&format!("FARESCAN_HOTELS_SEARCH_PATH holds `{bad}`")),
                "{fault}"
            );
        }
        for bad in ["", "two words", "höst"] {
            let mut config = config();
            config.hotels_host = Some(bad.into());
            let fault = Native::new(&config).unwrap_err().to_string();
            assert!(
                fault.starts_with(&format!("FARESCAN_HOTELS_HOST holds `{bad}`")),
                "{fault}"
            );
        }
    }

    #[test]
    fn the_time_budget_is_a_number_of_seconds() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("3600"), Ok(Duration::from_secs(3600)));
        for bad in ["0", "-1", "3600.1", "NaN", "inf", "3m", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}

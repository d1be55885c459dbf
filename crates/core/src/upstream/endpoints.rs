//! Configuration of the marketplace: base URLs, paths, hosts and header names
//! (gateway.md, rule 44).
//!
//! [`UpstreamConfig`] holds the settings, `UpstreamEndpoints` the validated form.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use super::Marketplace;
use crate::contract::{Api, Endpoint};

/// Connection to the marketplace. `.env.example` has a preset for the real listing.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Marketplace")]
pub struct UpstreamConfig {
    /// Base URL of the flights engine: scheme, host and an optional path prefix.
    #[arg(long, env = "FARESCAN_FLIGHTS_URL", value_name = "URL")]
    pub flights_url: Option<Url>,
    /// Base URL of the hotels engine.
    #[arg(long, env = "FARESCAN_HOTELS_URL", value_name = "URL")]
    pub hotels_url: Option<Url>,
    /// Value of the host header for flights [default: the URL's host].
    #[arg(long, env = "FARESCAN_FLIGHTS_HOST", value_name = "HOST")]
    pub flights_host: Option<String>,
    /// Value of the host header for hotels [default: the URL's host].
    #[arg(long, env = "FARESCAN_HOTELS_HOST", value_name = "HOST")]
    pub hotels_host: Option<String>,
    /// Header that carries the caller's key to the marketplace.
    #[arg(long, env = "FARESCAN_UPSTREAM_KEY_HEADER", value_name = "NAME", default_value = KEY_HEADER)]
    pub upstream_key_header: HeaderName,
    /// Header that names the API to the marketplace.
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
    /// Time budget of one search in seconds, including the retry after a server error.
    #[arg(long, env = "FARESCAN_SEARCH_TIMEOUT_SECONDS", value_name = "SECONDS", default_value = "180", value_parser = seconds)]
    pub search_timeout_seconds: Duration,
    /// Allow plain http to another machine: keys are then sent unencrypted. Only for a simulator in a private network
    #[arg(long, env = "FARESCAN_UPSTREAM_ALLOW_HTTP")]
    pub upstream_allow_http: bool,
    /// The URLs are those of a simulator that this process has started.
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
/// Time budget of one search (gateway.md, rule 18).
const SEARCH_TIMEOUT: Duration = Duration::from_secs(180);
/// Upper bound of the time budget.
const LONGEST_TIMEOUT_SECONDS: f64 = 3600.0;

/// An unusable setting and the variable that sets it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamConfigError {
    /// The URL of an engine is missing.
    #[error(
        "{0} is not set: set it to the marketplace's URL, or try things on a simulated marketplace with `farescan serve --sandbox`"
    )]
    Missing(&'static str),
    /// The value is invalid.
    #[error("{variable} holds `{found}`; expected: {expected}")]
    Unusable {
        /// Environment variable.
        variable: &'static str,
        /// Its value.
        found: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// The system's root certificates are unreadable.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}

impl UpstreamConfig {
    /// A marketplace at these URLs with default paths and header names: for the sandbox and tests.
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
    let expected = || format!("a number of seconds above 0 and up to {LONGEST_TIMEOUT_SECONDS}");
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    let usable = seconds > 0.0 && seconds <= LONGEST_TIMEOUT_SECONDS;
    if usable {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(expected())
    }
}

/// The validated endpoints and headers of the marketplace.
#[derive(Debug, Clone)]
pub(super) struct UpstreamEndpoints {
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

impl UpstreamEndpoints {
    pub(super) fn new(config: &UpstreamConfig) -> Result<Self, UpstreamConfigError> {
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
            oneway: native_url(
                flights,
                "FARESCAN_FLIGHTS_ONEWAY_PATH",
                &config.flights_oneway_path,
            )?,
            roundtrip: native_url(
                flights,
                "FARESCAN_FLIGHTS_ROUNDTRIP_PATH",
                &config.flights_roundtrip_path,
            )?,
            search: native_url(
                hotels,
                "FARESCAN_HOTELS_SEARCH_PATH",
                &config.hotels_search_path,
            )?,
            by_name: native_url(
                hotels,
                "FARESCAN_HOTELS_BY_NAME_PATH",
                &config.hotels_by_name_path,
            )?,
            rooms: native_url(
                hotels,
                "FARESCAN_HOTELS_ROOMS_PATH",
                &config.hotels_rooms_path,
            )?,
            resolve: native_url(
                hotels,
                "FARESCAN_HOTELS_RESOLVE_PATH",
                &config.hotels_resolve_path,
            )?,
        })
    }

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
) -> Result<&'a Url, UpstreamConfigError> {
    let url = url.ok_or(UpstreamConfigError::Missing(variable))?;
    let bare = url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    let is_http = url.scheme() == "http";
    // Without user name, password and query, which may be secrets.
    let found = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    if !bare || !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(UpstreamConfigError::Unusable {
            variable,
            found,
            expected: "an http or https URL without user name, query or fragment",
        });
    }
    if is_reserved(url) {
        return Err(UpstreamConfigError::Unusable {
            variable,
            found,
            expected: "the host that the marketplace's listing shows; this one is a placeholder, whose name is reserved for examples",
        });
    }
    if is_http && !allow_http && !is_loopback(url) {
        let expected = "an https URL, since each call carries a key; http only to this machine (127.0.0.1, [::1], localhost), or anywhere with \
                       FARESCAN_UPSTREAM_ALLOW_HTTP=true";
        return Err(UpstreamConfigError::Unusable {
            variable,
            found,
            expected,
        });
    }
    Ok(url)
}

/// Whether the host's name is reserved for examples (RFC 2606), so that no marketplace can have it.
/// `.test` is not among them: private networks use it.
fn is_reserved(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let under = |name: &str| {
        host.strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    [
        "example",
        "invalid",
        "example.com",
        "example.net",
        "example.org",
    ]
    .into_iter()
    .any(under)
}

/// Whether requests stay on this machine. Names other than `localhost` do not count: DNS can
/// change.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn native_url(
    engine: &Url,
    variable: &'static str,
    path: &str,
) -> Result<Url, UpstreamConfigError> {
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['?', '#']);
    if !path.starts_with('/') || !plain {
        let expected = "a path that begins with / and has no white space, query or fragment";
        return Err(UpstreamConfigError::Unusable {
            variable,
            found: path.to_owned(),
            expected,
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
) -> Result<HeaderValue, UpstreamConfigError> {
    let host = set.or(engine.host_str()).unwrap_or_default();
    let usable = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
    let unusable = || UpstreamConfigError::Unusable {
        variable,
        found: host.to_owned(),
        expected: "a host name",
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
            url("https://flights.test"),
            url("https://hotels.test:8443/prefix/"),
        )
    }

    #[test]
    fn defaults_are_those_of_the_reference() {
        let line = [
            "farescan",
            "--flights-url",
            "https://flights.test",
            "--hotels-url",
            "https://hotels.test:8443/prefix/",
        ];
        let parsed = Line::parse_from(line).upstream;
        assert_eq!(format!("{parsed:?}"), format!("{:?}", config()));
        assert_eq!(parsed.search_timeout_seconds, Duration::from_secs(180));
        let endpoints = UpstreamEndpoints::new(&parsed).unwrap();
        let rows = [
            (
                Endpoint::FlightsOneway,
                "https://flights.test/api/google_flights/oneway/v1",
            ),
            (
                Endpoint::FlightsRoundtrip,
                "https://flights.test/api/google_flights/roundtrip/v1",
            ),
            (
                Endpoint::HotelsSearch,
                "https://hotels.test:8443/prefix/search",
            ),
            (
                Endpoint::HotelsByName,
                "https://hotels.test:8443/prefix/hotel_by_name",
            ),
            (
                Endpoint::HotelsRooms,
                "https://hotels.test:8443/prefix/hotel",
            ),
            (
                Endpoint::HotelsResolve,
                "https://hotels.test:8443/prefix/resolve",
            ),
        ];
        for (endpoint, expected) in rows {
            assert_eq!(endpoints.url(endpoint).as_str(), expected);
        }
        assert_eq!(
            (
                endpoints.key_header.as_str(),
                endpoints.host_header.as_str()
            ),
            ("x-marketplace-key", "x-marketplace-host")
        );
        assert_eq!(
            (endpoints.host(Api::Flights), endpoints.host(Api::Hotels)),
            (
                &"flights.test".parse().unwrap(),
                &"hotels.test".parse().unwrap()
            )
        );
    }

    #[test]
    fn http_is_accepted_only_for_this_machine_unless_allowed() {
        for (address, is_taken) in [
            ("http://127.0.0.1:8090", true),
            ("http://[::1]:8090", true),
            ("http://localhost", true),
            ("http://sandbox:8090", false),
            ("http://10.0.0.1", false),
            ("http://127.0.0.1.test", false),
            ("https://market.test", true),
        ] {
            let mut config = UpstreamConfig::at(url(address), url(address));
            let made = UpstreamEndpoints::new(&config);
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
            assert!(UpstreamEndpoints::new(&config).is_ok(), "{address}");
        }
    }

    #[test]
    fn a_placeholder_is_no_marketplace() {
        for (host, is_taken) in [
            ("flights.marketplace.example", false),
            ("example", false),
            ("api.EXAMPLE.com.", false),
            ("market.invalid", false),
            ("notexample.com", true),
            ("example.com.market.io", true),
            ("market.test", true),
        ] {
            let address = url(&format!("https://{host}"));
            let made = UpstreamEndpoints::new(&UpstreamConfig::at(address.clone(), address));
            assert_eq!(made.is_ok(), is_taken, "{host}");
        }
    }

    #[test]
    fn a_configured_host_overrides_the_urls_host() {
        let mut config = config();
        config.flights_host = Some("fares.listing.test".into());
        config.hotels_host = Some("stays.listing.test".into());
        let endpoints = UpstreamEndpoints::new(&config).unwrap();
        assert_eq!(endpoints.host(Api::Flights), "fares.listing.test");
        assert_eq!(endpoints.host(Api::Hotels), "stays.listing.test");
    }

    #[test]
    fn a_missing_url_error_names_its_variable_and_the_sandbox() {
        let (mut no_flights, mut no_hotels) = (config(), config());
        no_flights.flights_url = None;
        no_hotels.hotels_url = None;
        for (config, variable) in [
            (no_flights, "FARESCAN_FLIGHTS_URL"),
            (no_hotels, "FARESCAN_HOTELS_URL"),
        ] {
            let fault = UpstreamEndpoints::new(&config).unwrap_err();
            assert_eq!(fault, UpstreamConfigError::Missing(variable));
            assert!(fault.to_string().contains("--sandbox"), "{fault}");
        }
    }

    #[test]
    fn invalid_settings_are_refused() {
        for bad in [
            "ftp://h.test",
            "https://user@h.test",
            "https://:pw@h.test",
            "https://h.test?q=1",
            "https://h.test#f",
        ] {
            let mut config = config();
            config.flights_url = Some(url(bad));
            let fault = UpstreamEndpoints::new(&config).unwrap_err().to_string();
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
            let fault = UpstreamEndpoints::new(&config).unwrap_err().to_string();
            assert!(
                fault.starts_with(&format!("FARESCAN_HOTELS_SEARCH_PATH holds `{bad}`")),
                "{fault}"
            );
        }
        for bad in ["", "two words", "höst"] {
            let mut config = config();
            config.hotels_host = Some(bad.into());
            let fault = UpstreamEndpoints::new(&config).unwrap_err().to_string();
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

//! Interprets the response to `verify`'s cheap call (gateway.md, rule 20). `client` sends it.
//!
//! The marketplace checks key and subscription before the engine reads the body. A body that the
//! engine rejects therefore shows whether the key is valid, without a search.

use std::time::Duration;

use super::raw_response::{NoResponse, RawResponse};
use crate::contract::verify::VerifyReason;
use crate::contract::{Api, Endpoint};
use crate::search::{Incomplete, PlanQuota};

/// The result of a cheap call.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The verdict on the key; `Err` if there was no usable response.
    pub verdict: Result<VerifyReason, Incomplete>,
    /// The quota headers as forwarded to the caller.
    pub plan_headers: Vec<(String, String)>,
    /// The parsed quota headers.
    pub plan: PlanQuota,
    /// Requests that the marketplace will bill.
    pub billed_requests: u16,
    pub latency: Duration,
}

/// The endpoint that rejects an empty body with the least work.
pub fn probe_endpoint(api: Api) -> Endpoint {
    match api {
        Api::Flights => Endpoint::FlightsOneway,
        Api::Hotels => Endpoint::HotelsResolve,
    }
}

pub(super) fn classify(
    response: &Result<RawResponse, NoResponse>,
) -> Result<VerifyReason, Incomplete> {
    match response {
        Ok(response) => match response.status {
            200..=299 | 400 | 422 => Ok(VerifyReason::Subscribed),
            401 => Ok(VerifyReason::InvalidKey),
            403 => Ok(VerifyReason::NotSubscribed),
            429 => Ok(VerifyReason::QuotaExhausted),
            status => Err(Incomplete::Status(status)),
        },
        Err(NoResponse::TimedOut) => Err(Incomplete::Timeout),
        Err(NoResponse::NotConnected | NoResponse::Broken) => Err(Incomplete::Connection),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::unnecessary_wraps,
        reason = "an answer as the client hands it over"
    )]
    fn response(status: u16) -> Result<RawResponse, NoResponse> {
        Ok(RawResponse {
            status,
            headers: reqwest::header::HeaderMap::new(),
            body: Ok(bytes::Bytes::new()),
        })
    }

    #[test]
    fn each_probe_status_has_its_verify_reason() {
        let rows = [
            (200, Ok(VerifyReason::Subscribed)),
            (400, Ok(VerifyReason::Subscribed)),
            (422, Ok(VerifyReason::Subscribed)),
            (401, Ok(VerifyReason::InvalidKey)),
            (403, Ok(VerifyReason::NotSubscribed)),
            (429, Ok(VerifyReason::QuotaExhausted)),
            (404, Err(Incomplete::Status(404))),
            (503, Err(Incomplete::Status(503))),
            (302, Err(Incomplete::Status(302))),
        ];
        for (status, verdict) in rows {
            assert_eq!(classify(&response(status)), verdict, "{status}");
        }
        assert_eq!(
            classify(&Err(NoResponse::TimedOut)),
            Err(Incomplete::Timeout)
        );
        assert_eq!(
            classify(&Err(NoResponse::Broken)),
            Err(Incomplete::Connection)
        );
        assert_eq!(
            classify(&Err(NoResponse::NotConnected)),
            Err(Incomplete::Connection)
        );
    }

    #[test]
    fn the_lightest_paths_are_oneway_and_resolve() {
        assert_eq!(probe_endpoint(Api::Flights), Endpoint::FlightsOneway);
        assert_eq!(probe_endpoint(Api::Hotels), Endpoint::HotelsResolve);
    }
}

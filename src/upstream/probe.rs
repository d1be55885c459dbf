//! What verify's cheap call says of a key (contract 20). Pure but for the call, which `client` makes.
//!
//! The marketplace checks key and subscription before the engine looks at the body; so a body that the engine refuses at once tells
//! whether the key is good without a search.

use std::time::Duration;

use super::reply::{NoReply, Reply};
use crate::contract::account::VerifyReason;
use crate::contract::{Api, Endpoint};
use crate::search::{Incomplete, PlanQuota};

/// The answer to one cheap call.
#[derive(Debug, Clone)]
pub struct Probe {
    /// What it says of the key; `Err`: nothing, because the marketplace gave no usable answer.
    pub verdict: Result<VerifyReason, Incomplete>,
    /// The quota headers under the names they go out with.
    pub plan_headers: Vec<(String, String)>,
    /// The same, read.
    pub plan: PlanQuota,
    /// Requests that the marketplace will bill for it.
    pub billed_requests: u16,
    /// How long it took.
    pub latency: Duration,
}

/// The endpoint that refuses an empty body with the least work.
#[must_use]
pub fn lightest(api: Api) -> Endpoint {
    match api {
        Api::Flights => Endpoint::FlightsOneway,
        Api::Hotels => Endpoint::HotelsResolve,
    }
}

pub(super) fn judge(reply: &Result<Reply, NoReply>) -> Result<VerifyReason, Incomplete> {
    match reply {
        Ok(reply) => match reply.status {
            200..=299 | 400 | 422 => Ok(VerifyReason::Subscribed),
            401 => Ok(VerifyReason::InvalidKey),
            403 => Ok(VerifyReason::NotSubscribed),
            429 => Ok(VerifyReason::QuotaExhausted),
            status => Err(Incomplete::Status(status)),
        },
        Err(NoReply::Late) => Err(Incomplete::Timeout),
        Err(NoReply::Unconnected | NoReply::Broken) => Err(Incomplete::Connection),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::unnecessary_wraps,
        reason = "an answer as the client hands it over"
    )]
    fn reply(status: u16) -> Result<Reply, NoReply> {
        Ok(Reply {
            status,
            headers: reqwest::header::HeaderMap::new(),
            body: Ok(bytes::Bytes::new()),
        })
    }

    #[test]
    fn contract_20_what_each_status_says_of_the_key() {
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
            assert_eq!(judge(&reply(status)), verdict, "{status}");
        }
        assert_eq!(judge(&Err(NoReply::Late)), Err(Incomplete::Timeout));
        assert_eq!(judge(&Err(NoReply::Broken)), Err(Incomplete::Connection));
        assert_eq!(
            judge(&Err(NoReply::Unconnected)),
            Err(Incomplete::Connection)
        );
    }

    #[test]
    fn contract_20_the_lightest_paths() {
        assert_eq!(lightest(Api::Flights), Endpoint::FlightsOneway);
        assert_eq!(lightest(Api::Hotels), Endpoint::HotelsResolve);
    }
}

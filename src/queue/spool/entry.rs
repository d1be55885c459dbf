//! A finished call in the form in which it stands in the spool: a version of its own, so that what changes in the program does not change
//! what an older program wrote.
//!
//! ```text
//!  length of the facts u32 · facts (JSON) · the answer as it is stored (zstd), or nothing · the outcome, the same
//! ```

use bytes::Bytes;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::contract::{Api, Endpoint, Offer, Request, Verdict};
use crate::queue::finished::{Finished, observation};
use crate::queue::store::{Claimed, FinishedCall};
use crate::search::PlanQuota;

/// Everything but the answer and the outcome.
#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    lane: Api,
    /// The endpoint's word and the search's body: the observation's subject is made of them anew.
    endpoint: String,
    search: Map<String, Value>,
    call: FinishedCall,
    /// What the plan headers said when the call ended.
    #[serde(default)]
    plan: PlanQuota,
    /// Bytes of the answer.
    answer: usize,
    best: Option<Best>,
}

/// The offer that has the item's price. Numbers as text, so that no digit is lost.
#[derive(Debug, Serialize, Deserialize)]
struct Best {
    price: String,
    currency: Option<String>,
    carrier_or_room: Option<String>,
    hotel: Option<String>,
    board: Option<String>,
    link: Option<String>,
    verdict: Option<Verdict>,
    band_low: Option<String>,
    band_high: Option<String>,
    stops: Option<u32>,
}

/// A payload that is no finished call.
#[derive(Debug, thiserror::Error)]
pub(in crate::queue) enum Unreadable {
    #[error("it is cut")]
    Cut,
    #[error("its facts cannot be read: {0}")]
    Facts(#[from] serde_json::Error),
    #[error("a number of its offer cannot be read: {0}")]
    Number(#[from] rust_decimal::Error),
}

/// The payload of a finished call.
pub(in crate::queue) fn write(
    finished: &Finished,
    claimed: &Claimed,
) -> serde_json::Result<Vec<u8>> {
    let facts = Facts {
        lane: finished.lane,
        endpoint: claimed.endpoint.clone(),
        search: claimed.body.clone(),
        call: finished.call.clone(),
        plan: finished.plan,
        answer: finished.answer.as_ref().map_or(0, Bytes::len),
        best: finished.best.as_ref().map(Best::of),
    };
    let facts = serde_json::to_vec(&facts)?;
    let length = u32::try_from(facts.len()).unwrap_or(u32::MAX);
    let [answer, kept] =
        [&finished.answer, &finished.kept].map(|bytes| bytes.as_deref().unwrap_or_default());
    Ok([&length.to_le_bytes(), &facts[..], answer, kept].concat())
}

/// The finished call of a payload.
pub(in crate::queue) fn read(payload: &[u8]) -> Result<Finished, Unreadable> {
    let (length, rest) = payload.split_first_chunk::<4>().ok_or(Unreadable::Cut)?;
    let (facts, rest) = rest
        .split_at_checked(u32::from_le_bytes(*length) as usize)
        .ok_or(Unreadable::Cut)?;
    let facts: Facts = serde_json::from_slice(facts)?;
    let (answer, kept) = rest.split_at_checked(facts.answer).ok_or(Unreadable::Cut)?;
    let bytes = |bytes: &[u8]| (!bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes));
    let best = facts.best.map(Best::offer).transpose()?;
    // A search that this program would refuse has left no observation: there is no product to file it under.
    let asked = Endpoint::parse(&facts.endpoint)
        .and_then(|endpoint| Request::check(endpoint, &facts.search).ok());
    let observation =
        asked.and_then(|checked| observation(&checked.request, &facts.call, best.as_ref()));
    Ok(Finished {
        lane: facts.lane,
        answer: bytes(answer),
        kept: bytes(kept),
        observation,
        best,
        plan: facts.plan,
        sign: None,
        call: facts.call,
    })
}

impl Best {
    fn of(offer: &Offer) -> Self {
        let text = |number: Decimal| number.to_string();
        Self {
            price: text(offer.price),
            currency: offer.currency.clone(),
            carrier_or_room: offer.carrier_or_room.clone(),
            hotel: offer.hotel.clone(),
            board: offer.board.clone(),
            link: offer.link.clone(),
            verdict: offer.verdict,
            band_low: offer.band_low.map(text),
            band_high: offer.band_high.map(text),
            stops: offer.stops,
        }
    }

    fn offer(self) -> Result<Offer, rust_decimal::Error> {
        let number = |text: Option<String>| text.map(|text| text.parse()).transpose();
        Ok(Offer {
            price: self.price.parse()?,
            currency: self.currency,
            carrier_or_room: self.carrier_or_room,
            hotel: self.hotel,
            board: self.board,
            link: self.link,
            verdict: self.verdict,
            band_low: number(self.band_low)?,
            band_high: number(self.band_high)?,
            stops: self.stops,
        })
    }
}

//! A completed call as a spool payload. The format is separate from the types of the program, so
//! that a newer program reads what an older one wrote.
//!
//! ```text
//!  length of the header u32 · header (JSON) · answer (zstd), if any · outcome (zstd), if any
//! ```

use bytes::Bytes;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::contract::{Api, Endpoint, Offer, Request, Verdict};
use crate::queue::completed_call::{CompletedCall, observation};
use crate::queue::store::{CallRecord, ClaimRow};
use crate::search::PlanQuota;

/// Everything but the answer and the outcome. The field names are part of the format.
#[derive(Debug, Serialize, Deserialize)]
struct EntryHeader {
    lane: Api,
    /// With the search's body, the source of the observation's subject.
    endpoint: String,
    search: Map<String, Value>,
    #[serde(rename = "call")]
    record: CallRecord,
    /// What the plan headers said when the call ended.
    #[serde(default)]
    plan: PlanQuota,
    /// Bytes of the answer.
    answer: usize,
    best: Option<OfferEntry>,
}

/// The offer that has the item's price. Numbers are text, so that no digit is lost.
#[derive(Debug, Serialize, Deserialize)]
struct OfferEntry {
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

/// The payload is not a completed call.
#[derive(Debug, thiserror::Error)]
pub(in crate::queue) enum EntryError {
    #[error("the payload is truncated")]
    Truncated,
    #[error("invalid header: {0}")]
    Header(#[from] serde_json::Error),
    #[error("invalid number in the offer: {0}")]
    Number(#[from] rust_decimal::Error),
}

/// Writes a completed call as a payload.
pub(in crate::queue) fn write(
    completed: &CompletedCall,
    row: &ClaimRow,
) -> serde_json::Result<Vec<u8>> {
    let header = EntryHeader {
        lane: completed.lane,
        endpoint: row.endpoint.clone(),
        search: row.body.clone(),
        record: completed.record.clone(),
        plan: completed.plan,
        answer: completed.answer.as_ref().map_or(0, Bytes::len),
        best: completed.best.as_ref().map(OfferEntry::of),
    };
    let header = serde_json::to_vec(&header)?;
    let length = u32::try_from(header.len()).unwrap_or(u32::MAX);
    let [answer, stored_outcome] = [&completed.answer, &completed.stored_outcome]
        .map(|bytes| bytes.as_deref().unwrap_or_default());
    Ok([&length.to_le_bytes(), &header[..], answer, stored_outcome].concat())
}

/// Reads the completed call of a payload.
pub(in crate::queue) fn read(payload: &[u8]) -> Result<CompletedCall, EntryError> {
    let (length, rest) = payload
        .split_first_chunk::<4>()
        .ok_or(EntryError::Truncated)?;
    let (header, rest) = rest
        .split_at_checked(u32::from_le_bytes(*length) as usize)
        .ok_or(EntryError::Truncated)?;
    let header: EntryHeader = serde_json::from_slice(header)?;
    let (answer, stored_outcome) = rest
        .split_at_checked(header.answer)
        .ok_or(EntryError::Truncated)?;
    let bytes = |bytes: &[u8]| (!bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes));
    let best = header.best.map(OfferEntry::offer).transpose()?;
    // A search that this version rejects has no observation: its product is unknown.
    let checked = Endpoint::parse(&header.endpoint)
        .and_then(|endpoint| Request::check(endpoint, &header.search).ok());
    let observation =
        checked.and_then(|checked| observation(&checked.request, &header.record, best.as_ref()));
    Ok(CompletedCall {
        lane: header.lane,
        answer: bytes(answer),
        stored_outcome: bytes(stored_outcome),
        observation,
        best,
        plan: header.plan,
        health: None,
        record: header.record,
    })
}

impl OfferEntry {
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

//! A caller's activity: scans, alerts and deliveries as one list, newest first.
//!
//! Each kind is read in its own order, scans and deliveries by id, alerts by time and id, and the page is
//! merged by time. A cursor holds a place in each kind, also of one that the page has no row of. So the
//! pages lose no row and list none twice, also with equal times or with a time of the past, and a row that
//! is added meanwhile is newer than each of them.

use std::iter::Peekable;
use std::vec::IntoIter;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

use crate::contract::ValidationErrors;
use crate::contract::monitors::AlertsQuery;
use crate::contract::primitives::Cursor;
use crate::contract::scans::{Scan, ScansQuery};
use crate::contract::webhooks::{DeliveriesQuery, Delivery};
use crate::ids::{AlertId, DeliveryId, MonitorId, ScanId, TenantId};
use crate::monitors::alerts;
use crate::monitors::read::ids_containing;
use crate::paging::{self, PageError, limit_plus_one};
use crate::scans::read::{ScanConditions, scans_before};
use crate::webhooks::read::deliveries_before;

const ACTIVITY: &str = "activity";

/// A kind of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityKind {
    /// Scans, also the runs of monitors.
    Scans,
    /// The runs of monitors.
    Runs,
    /// Alerts.
    Alerts,
    /// Deliveries.
    Deliveries,
}

/// Conditions of a list. A row has to fulfil all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityConditions {
    /// It is of this kind.
    pub kind: Option<ActivityKind>,
    /// It is a scan that contains this text as `ScansQuery::text` says, or of a monitor whose name,
    /// airports or hotel contain it.
    pub text: Option<String>,
    /// It is an incomplete scan or a failed delivery.
    pub needs_attention: bool,
    /// It is none of these scans.
    pub without: Vec<ScanId>,
}

/// A row.
#[derive(Debug, Clone)]
pub enum Activity {
    /// A scan, which may be the run of a monitor.
    Scan(Box<Scan>),
    /// An alert as it is stored, with its time and id.
    Alert(Timestamp, AlertId, Value),
    /// A delivery.
    Delivery(Delivery),
}

impl Activity {
    /// When it was created, or fired.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Scan(scan) => scan.created_at,
            Self::Alert(at, ..) => *at,
            Self::Delivery(delivery) => delivery.created_at,
        }
    }
}

/// A page of the list.
#[derive(Debug, Clone, Default)]
pub struct ActivityPage {
    /// The newest first; of one time deliveries, then alerts, then scans, as one causes the other.
    pub data: Vec<Activity>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// A page of a caller's activity, of at most `limit` rows.
///
/// # Errors
/// When the cursor is not from this list, or the database does not answer.
pub async fn activity(
    pool: &PgPool,
    tenant: TenantId,
    conditions: &ActivityConditions,
    limit: u16,
    cursor: Option<&Cursor>,
) -> Result<ActivityPage, PageError> {
    let place = cursor.map(ActivityPlace::decode).transpose()?;
    let place = place.unwrap_or_else(ActivityPlace::newest);
    let read = ActivityRead {
        pool,
        tenant,
        conditions,
        monitors: match &conditions.text {
            Some(text) => Some(ids_containing(pool, tenant, text).await?),
            None => None,
        },
        limit: limit_plus_one(limit.into()),
    };
    let mut rows = Rows {
        scans: read.scans(place.scan).await?.into_iter().peekable(),
        alerts: read.alerts(place.alert).await?.into_iter().peekable(),
        deliveries: read
            .deliveries(place.delivery)
            .await?
            .into_iter()
            .peekable(),
    };
    let data: Vec<_> = rows.by_ref().take(limit.into()).collect();
    let next = rows.place().filter(|_| !data.is_empty());
    Ok(ActivityPage {
        data,
        next_cursor: next.map(ActivityPlace::encode),
    })
}

/// What the rows of each kind are read by. A kind without a place has no more rows.
struct ActivityRead<'a> {
    pool: &'a PgPool,
    tenant: TenantId,
    conditions: &'a ActivityConditions,
    /// With a text: the monitors that contain its words.
    monitors: Option<Vec<MonitorId>>,
    limit: i64,
}

impl ActivityRead<'_> {
    async fn scans(&self, before: Option<ScanId>) -> Result<Vec<Scan>, PageError> {
        let conditions = self.conditions;
        let is_run = match conditions.kind {
            None | Some(ActivityKind::Scans) => false,
            Some(ActivityKind::Runs) => true,
            Some(ActivityKind::Alerts | ActivityKind::Deliveries) => return Ok(Vec::new()),
        };
        if before.is_none() {
            return Ok(Vec::new());
        }
        let status = conditions
            .needs_attention
            .then_some(("status", "incomplete"));
        let text = conditions.text.as_deref().map(|text| ("text", text));
        let query = ScansQuery::from_query(status.into_iter().chain(text))?;
        let more = ScanConditions {
            monitors: self.monitors.clone().unwrap_or_default(),
            is_run,
            ..ScanConditions::default()
        };
        // As many more as may be left out.
        let without = i64::try_from(conditions.without.len()).unwrap_or(i64::MAX);
        let limit = self.limit.saturating_add(without);
        let mut scans = scans_before(self.pool, self.tenant, &query, &more, before, limit).await?;
        scans.retain(|scan| !conditions.without.contains(&scan.id));
        Ok(scans)
    }

    async fn alerts(
        &self,
        before: Option<(Timestamp, AlertId)>,
    ) -> Result<Vec<(Timestamp, AlertId, Value)>, PageError> {
        if self.leaves_out(ActivityKind::Alerts)
            || self.conditions.needs_attention
            || before.is_none()
        {
            return Ok(Vec::new());
        }
        let (query, of) = (AlertsQuery::from_query([])?, self.monitors.as_deref());
        let read =
            alerts::read::alerts_before(self.pool, self.tenant, &query, of, before, self.limit);
        Ok(read.await?)
    }

    async fn deliveries(&self, before: Option<DeliveryId>) -> Result<Vec<Delivery>, PageError> {
        if self.leaves_out(ActivityKind::Deliveries) || before.is_none() {
            return Ok(Vec::new());
        }
        let failed = self.conditions.needs_attention;
        let query = DeliveriesQuery::from_query(failed.then_some(("status", "failed")))?;
        let of = self.monitors.as_deref();
        let read = deliveries_before(self.pool, self.tenant, &query, of, before, self.limit);
        Ok(read.await?)
    }

    /// Another kind is chosen, or no monitor contains the text.
    fn leaves_out(&self, kind: ActivityKind) -> bool {
        let chosen = self.conditions.kind;
        chosen.is_some_and(|chosen| chosen != kind)
            || self.monitors.as_ref().is_some_and(Vec::is_empty)
    }
}

/// The rows of each kind in its order, of each one more than a page has: what is left of a kind after a
/// page is all that a next page needs to know.
struct Rows {
    scans: Peekable<IntoIter<Scan>>,
    alerts: Peekable<IntoIter<(Timestamp, AlertId, Value)>>,
    deliveries: Peekable<IntoIter<Delivery>>,
}

impl Iterator for Rows {
    type Item = Activity;

    fn next(&mut self) -> Option<Activity> {
        let scan = self.scans.peek().map(|scan| scan.created_at);
        let alert = self.alerts.peek().map(|(at, ..)| *at);
        let delivery = self.deliveries.peek().map(|delivery| delivery.created_at);
        // `None` is the least.
        let newest = scan.max(alert).max(delivery)?;
        if delivery == Some(newest) {
            self.deliveries.next().map(Activity::Delivery)
        } else if alert == Some(newest) {
            let alert = self.alerts.next();
            alert.map(|(at, id, alert)| Activity::Alert(at, id, alert))
        } else {
            self.scans.next().map(|scan| Activity::Scan(Box::new(scan)))
        }
    }
}

impl Rows {
    /// The place before the next row of each kind; `None` if no kind has one.
    fn place(&mut self) -> Option<ActivityPlace> {
        let scan = self.scans.peek().map(|scan| scan.id);
        let alert = self.alerts.peek().map(|(at, id, _)| (*at, *id));
        let delivery = self.deliveries.peek().map(|delivery| delivery.id);
        let place = ActivityPlace {
            scan: scan.map(|id| following(id.uuid()).into()),
            alert: alert.map(|(at, id)| (at, following(id.uuid()).into())),
            delivery: delivery.map(|id| following(id.uuid()).into()),
        };
        (place != ActivityPlace::default()).then_some(place)
    }
}

/// The id after one: what is less is that one or less.
fn following(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_add(1))
}

/// A place in the list: of each kind only rows that are less, and none of a kind without a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ActivityPlace {
    scan: Option<ScanId>,
    alert: Option<(Timestamp, AlertId)>,
    delivery: Option<DeliveryId>,
}

impl ActivityPlace {
    /// Before the newest row of each kind.
    fn newest() -> Self {
        let id = Uuid::max();
        Self {
            scan: Some(id.into()),
            alert: Some((Timestamp::MAX, id.into())),
            delivery: Some(id.into()),
        }
    }

    fn encode(self) -> String {
        // A cursor has at most 200 characters.
        let id = |id: Uuid| URL_SAFE_NO_PAD.encode(id);
        let alert = self.alert.map(|(at, alert)| (at, alert.uuid()));
        let parts = [
            self.scan.map(|scan| id(scan.uuid())),
            alert.map(|(at, _)| at.as_microsecond().to_string()),
            alert.map(|(_, alert)| id(alert)),
            self.delivery.map(|delivery| id(delivery.uuid())),
        ];
        paging::encode_cursor(ACTIVITY, parts.map(Option::unwrap_or_default))
    }

    fn decode(cursor: &Cursor) -> Result<Self, ValidationErrors> {
        let parts: [String; 4] = paging::decode_cursor(ACTIVITY, cursor)?;
        Self::of_parts(&parts).ok_or_else(|| paging::invalid_cursor(cursor))
    }

    fn of_parts([scan, at, alert, delivery]: &[String; 4]) -> Option<Self> {
        // Empty: the kind has no more rows.
        let id = |text: &str| match text {
            "" => Some(None),
            text => {
                let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
                Uuid::from_slice(&bytes).ok().map(Some)
            }
        };
        let alert = match id(alert)? {
            Some(alert) => Some((paging::cursor_time(at)?, alert.into())),
            None => None,
        };
        Some(Self {
            scan: id(scan)?.map(Into::into),
            alert,
            delivery: id(delivery)?.map(Into::into),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::FieldValue as _;

    #[test]
    fn a_place_is_read_as_it_was_written_and_other_cursors_are_refused() {
        let place = ActivityPlace {
            scan: Some(ScanId::new()),
            alert: Some((Timestamp::UNIX_EPOCH, AlertId::new())),
            delivery: Some(following(DeliveryId::new().uuid()).into()),
        };
        let read = |text: &str| ActivityPlace::decode(&Cursor::read(&json!(text)).unwrap());
        let last = ActivityPlace {
            scan: place.scan,
            ..ActivityPlace::default()
        };
        for place in [place, last] {
            assert_eq!(read(&place.encode()), Ok(place));
        }
        let others = [
            paging::encode_cursor("scans", [ScanId::new().to_string()]),
            paging::encode_cursor(ACTIVITY, ["AA", "0", "AA", "AA"].map(str::to_owned)),
        ];
        for other in others {
            assert!(read(&other).is_err(), "{other}");
        }
    }
}

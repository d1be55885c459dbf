//! Why a search has no price or is incomplete: the `reason` of items, cells, observations and
//! errors.

use super::string_enum::string_enum;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

string_enum! {
    /// The reasons that this service gives, and those that the marketplace is known to give.
    pub enum KnownReason {
        /// The marketplace did not respond in time.
        UpstreamTimeout = "upstream_timeout",
        /// The marketplace responded with a server error twice, or with an unexpected status.
        UpstreamStatus = "upstream_status",
        /// The marketplace could not be reached, or the connection broke.
        UpstreamConnection = "upstream_connection",
        /// The marketplace's response could not be parsed.
        UnreadableResponse = "unreadable_response",
        /// The marketplace did not report whether the search completed, or why not.
        NotStated = "not_stated",
        /// The searched site blocked the marketplace.
        BlockedPage = "blocked_page",
        /// The plan's rate window was full.
        RateLimited = "rate_limited",
        /// The plan's quota was used up.
        QuotaExhausted = "quota_exhausted",
        /// The marketplace does not know the key.
        KeyRejected = "key_rejected",
        /// The key has no subscription to the API.
        NotSubscribed = "not_subscribed",
        /// The marketplace refused the request as invalid.
        InvalidRequest = "invalid_request",
        /// The date of the search had passed when its turn came. Nothing was sent.
        DatePassed = "date_passed",
        /// The process died during the call. The call may have been billed and is not repeated
        /// automatically.
        WorkerLost = "worker_lost",
        /// The filters of the request removed all results.
        FilteredOut = "filtered_out",
        /// The place has no property for the stay.
        NoProperty = "no_property",
        /// No hotel matched the name.
        NoMatch = "no_match",
        /// The hotel has no room for the stay.
        NoRooms = "no_rooms",
        /// The hotel matched and is sold out for the stay.
        SoldOut = "sold_out",
    }
}

/// A known reason, or another one of the marketplace. Only for the OpenAPI document.
#[derive(Debug)]
pub struct SearchReason;

impl utoipa::PartialSchema for SearchReason {
    fn schema() -> RefOr<Schema> {
        let other = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Another reason of the marketplace."));
        AnyOfBuilder::new()
            .description(Some("Why a search has no price or is incomplete."))
            .item(Ref::from_schema_name("KnownReason"))
            .item(other)
            .into()
    }
}

impl utoipa::ToSchema for SearchReason {
    fn schemas(components: &mut super::field::Components) {
        components.push((
            "KnownReason".to_owned(),
            <KnownReason as utoipa::PartialSchema>::schema(),
        ));
    }
}

//! Why a search brought no price, or is not whole: the `reason` of items, cells, observations and errors.

use super::words::words;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

words! {
    /// The reasons that this service gives, and those that the marketplace is known to give.
    pub enum KnownReason {
        /// The marketplace did not answer in time.
        UpstreamTimeout = "upstream_timeout",
        /// The marketplace answered with a server error twice, or with a status that means nothing here.
        UpstreamStatus = "upstream_status",
        /// The marketplace could not be reached, or the connection broke.
        UpstreamConnection = "upstream_connection",
        /// The marketplace's answer could not be read.
        UnreadableResponse = "unreadable_response",
        /// The marketplace did not say whether the search completed, or not why it did not.
        NotStated = "not_stated",
        /// The marketplace was blocked by the site that it searches.
        BlockedPage = "blocked_page",
        /// The plan's rate window was full.
        RateLimited = "rate_limited",
        /// The plan's quota was used up.
        QuotaExhausted = "quota_exhausted",
        /// The marketplace does not know the key.
        KeyRejected = "key_rejected",
        /// The key has no subscription to the API.
        NotSubscribed = "not_subscribed",
        /// The marketplace refused the question itself.
        InvalidRequest = "invalid_request",
        /// The process died in the call: it may have been billed, and is not made again by itself.
        WorkerLost = "worker_lost",
        /// There were results, and all of them fell to a filter of the request.
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

/// A reason: one of the known ones, or another that the marketplace gave. For the description alone.
#[derive(Debug)]
pub struct SearchReason;

impl utoipa::PartialSchema for SearchReason {
    fn schema() -> RefOr<Schema> {
        let other = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Another reason that the marketplace gave."));
        AnyOfBuilder::new()
            .description(Some("Why a search brought no price, or is not whole."))
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

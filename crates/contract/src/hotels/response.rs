//! The hotel responses (gateway.md, rules 29 and 31 to 33).
//!
//! For the OpenAPI document and for code that reads responses. The service passes responses on
//! unchanged, with every field, known or not (gateway.md, rule 14). So every field is optional
//! here.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Response of `POST /v1/hotels/search`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "destination": "Lisbon", "checkin_date": "2027-01-14", "checkout_date": "2027-01-17",
    "applied_filters": ["free_cancellation"], "budget_per_night": null,
    "properties": [{
        "name": "Grand Hotel", "price_string": "US$312", "price": 312, "review_score": 8.7, "review_count": 1042,
        "room_type": "Double Room", "location": "Baixa, Lisbon", "image_url": null,
        "link": "https://hotels.example/pt/grand-hotel.html?checkin=2027-01-14", "nights": 3, "adults": 2, "children": 0
    }]
})))]
pub struct HotelSearchResponse {
    /// The searched place.
    #[schema(nullable = false)]
    pub destination: Option<String>,
    /// First night.
    #[schema(nullable = false, format = Date)]
    pub checkin_date: Option<String>,
    /// Day of departure.
    #[schema(nullable = false, format = Date)]
    pub checkout_date: Option<String>,
    /// The applied filters.
    #[schema(nullable = false)]
    pub applied_filters: Option<Vec<String>>,
    /// The applied budget.
    pub budget_per_night: Option<f64>,
    /// The hotels found: at most 50, no pagination.
    #[schema(nullable = false, max_items = 50)]
    pub properties: Option<Vec<HotelProperty>>,
}

/// One hotel with its best rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HotelProperty {
    /// The hotel's name.
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// Display price for the WHOLE stay.
    #[schema(nullable = false)]
    pub price_string: Option<String>,
    /// Total for the whole stay (not per night).
    #[schema(nullable = false)]
    pub price: Option<f64>,
    /// Guests' score.
    pub review_score: Option<f64>,
    /// Number of reviews.
    pub review_count: Option<i64>,
    /// The room of the price.
    pub room_type: Option<String>,
    /// Neighbourhood or distance text.
    pub location: Option<String>,
    /// A picture.
    #[schema(format = "uri")]
    pub image_url: Option<String>,
    /// Deep link to the property with dates and occupancy pre-filled.
    #[schema(nullable = false, format = "uri")]
    pub link: Option<String>,
    /// Number of nights that the price covers.
    #[schema(nullable = false)]
    pub nights: Option<i64>,
    /// Adults that the price is for.
    #[schema(nullable = false)]
    pub adults: Option<i64>,
    /// Children that the price is for.
    pub children: Option<i64>,
}

/// Response of `POST /v1/hotels/by-name`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "name": "Grand Hotel", "available": true, "price_string": "US$312", "price": 312, "review_score": 8.7,
    "review_count": 1042, "room_type": "Double Room", "image_url": null,
    "link": "https://hotels.example/pt/grand-hotel.html?checkin=2027-01-14", "nights": 3, "adults": 2, "children": 0
})))]
pub struct HotelByNameResponse {
    /// The hotel that matched; null when none did.
    pub name: Option<String>,
    /// False: no rooms for those dates, and then all price fields are null.
    #[schema(nullable = false)]
    pub available: Option<bool>,
    /// Display price for the whole stay.
    pub price_string: Option<String>,
    /// Total for the whole stay.
    pub price: Option<f64>,
    /// Guests' score.
    pub review_score: Option<f64>,
    /// Number of reviews.
    pub review_count: Option<i64>,
    /// The room of the price.
    pub room_type: Option<String>,
    /// A picture.
    #[schema(format = "uri")]
    pub image_url: Option<String>,
    /// Deep link to the hotel.
    #[schema(format = "uri")]
    pub link: Option<String>,
    /// Number of nights that the price covers.
    pub nights: Option<i64>,
    /// Adults that the price is for.
    pub adults: Option<i64>,
    /// Children that the price is for.
    pub children: Option<i64>,
}

/// Response of `POST /v1/hotels/rooms`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "hotel_booking_id": "pt/grand-hotel", "checkin_date": "2027-01-14", "checkout_date": "2027-01-17",
    "booking_url": "https://hotels.example/pt/grand-hotel.html?checkin=2027-01-14",
    "rooms": [{
        "room_type": "Double Room", "room_economy": "Breakfast included", "guests": 2,
        "price_as_number": 312, "price": "US$312"
    }]
})))]
pub struct HotelRoomsResponse {
    /// The hotel.
    #[schema(nullable = false)]
    pub hotel_booking_id: Option<String>,
    /// First night.
    #[schema(nullable = false, format = Date)]
    pub checkin_date: Option<String>,
    /// Day of departure.
    #[schema(nullable = false, format = Date)]
    pub checkout_date: Option<String>,
    /// Deep link, pre-filled.
    #[schema(nullable = false, format = "uri")]
    pub booking_url: Option<String>,
    /// Every bookable room; empty when there is none.
    #[schema(nullable = false)]
    pub rooms: Option<Vec<HotelRoom>>,
}

/// One bookable room with its board.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HotelRoom {
    /// The room.
    #[schema(nullable = false)]
    pub room_type: Option<String>,
    /// Board line, such as a breakfast note.
    #[schema(nullable = false)]
    pub room_economy: Option<String>,
    /// How many guests it is for.
    #[schema(nullable = false)]
    pub guests: Option<i64>,
    /// Total for the whole stay.
    #[schema(nullable = false)]
    pub price_as_number: Option<f64>,
    /// Display price.
    #[schema(nullable = false)]
    pub price: Option<String>,
}

/// Response of `POST /v1/hotels/resolve`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "hotel_name": "Grand Hotel Lisbon", "hotel_booking_id": "pt/grand-hotel", "matched_name": "Grand Hotel"
})))]
pub struct ResolveResponse {
    /// The requested name.
    #[schema(nullable = false)]
    pub hotel_name: Option<String>,
    /// The id for the rooms endpoint; can be reused.
    #[schema(nullable = false)]
    pub hotel_booking_id: Option<String>,
    /// The hotel's own name.
    #[schema(nullable = false)]
    pub matched_name: Option<String>,
}

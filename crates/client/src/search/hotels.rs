//! Tables of hotels and rooms.

use super::{HotelSearchArgs, HotelsSearch, RoomsSearch, lowest, price_text, search};
use crate::Failure;
use crate::render::{Column, ListTable};
use crate::wrap::note;
use farescan_contract::Endpoint;
use farescan_contract::hotels::{
    HotelByNameResponse, HotelRoomsResponse, HotelSearchResponse, ResolveResponse,
};
use farescan_sheets::draft::ScanDraft;

/// `search hotels`.
pub(super) async fn of_place(args: HotelsSearch) -> Result<(), Failure> {
    let mut fields = ScanDraft::new(Endpoint::HotelsSearch);
    fields.set("destination", Some(args.place));
    args.stay.apply(&mut fields)?;
    args.options.apply(&mut fields);
    search(args.send, fields, place_table).await
}

/// `search hotel`.
pub(super) async fn by_name(args: HotelSearchArgs) -> Result<(), Failure> {
    let mut fields = ScanDraft::new(Endpoint::HotelsByName);
    fields.set("hotel_name", Some(args.hotel));
    fields.set("area", args.area);
    args.stay.apply(&mut fields)?;
    args.options.apply(&mut fields);
    search(args.send, fields, hotel_table).await
}

/// `search rooms`: with a name, one more request finds the id.
pub(super) async fn rooms(args: RoomsSearch) -> Result<(), Failure> {
    let mut fields = ScanDraft::new(Endpoint::HotelsRooms);
    args.stay.apply(&mut fields)?;
    args.options.apply(&mut fields);
    let id = match args.id {
        Some(id) => id,
        None => {
            let mut name = ScanDraft::new(Endpoint::HotelsResolve);
            name.set("hotel_name", args.name);
            let resolver = args.send.client.open()?;
            let resolved: ResolveResponse = resolver
                .client
                .post("/v1/hotels/resolve", &name.request)
                .await?;
            let id = resolved.hotel_booking_id.unwrap_or_default();
            let matched = resolved.matched_name.unwrap_or_default();
            note!("{matched}: {id}");
            id
        }
    };
    fields
        .request
        .shift_insert(0, "hotel_booking_id".to_owned(), id.into());
    search(args.send, fields, room_table).await
}

fn place_table(answer: &HotelSearchResponse, currency: &str) -> Option<ListTable> {
    let hotels = answer
        .properties
        .as_deref()
        .filter(|hotels| !hotels.is_empty())?;
    let mut table = ListTable::new([
        Column::number(currency),
        Column::text("Hotel"),
        Column::number("Score"),
        Column::number("Reviews").rank(3),
        Column::text("Room").rank(2),
        Column::text("Where").rank(1),
    ]);
    let best = lowest(hotels.iter().filter_map(|hotel| hotel.price));
    for hotel in hotels {
        table.row([
            price_text(hotel.price, best),
            hotel.name.clone().unwrap_or_default().into(),
            hotel
                .review_score
                .map(|score| score.to_string())
                .unwrap_or_default()
                .into(),
            hotel
                .review_count
                .map(|count| count.to_string())
                .unwrap_or_default()
                .into(),
            hotel.room_type.clone().unwrap_or_default().into(),
            hotel.location.clone().unwrap_or_default().into(),
        ]);
    }
    Some(table)
}

fn hotel_table(hotel: &HotelByNameResponse, currency: &str) -> Option<ListTable> {
    hotel.price?;
    let mut table = ListTable::new([
        Column::number(currency),
        Column::text("Hotel"),
        Column::number("Nights"),
        Column::text("Room"),
        Column::number("Score").rank(1),
        Column::number("Reviews").rank(2),
    ]);
    table.row([
        price_text(hotel.price, None),
        hotel.name.clone().unwrap_or_default().into(),
        hotel
            .nights
            .map(|nights| nights.to_string())
            .unwrap_or_default()
            .into(),
        hotel.room_type.clone().unwrap_or_default().into(),
        hotel
            .review_score
            .map(|score| score.to_string())
            .unwrap_or_default()
            .into(),
        hotel
            .review_count
            .map(|count| count.to_string())
            .unwrap_or_default()
            .into(),
    ]);
    Some(table)
}

fn room_table(answer: &HotelRoomsResponse, currency: &str) -> Option<ListTable> {
    let rooms = answer.rooms.as_deref().filter(|rooms| !rooms.is_empty())?;
    let mut table = ListTable::new([
        Column::number(currency),
        Column::text("Room"),
        Column::text("Board"),
        Column::number("Guests").rank(1),
    ]);
    let best = lowest(rooms.iter().filter_map(|room| room.price_as_number));
    for room in rooms {
        table.row([
            price_text(room.price_as_number, best),
            room.room_type.clone().unwrap_or_default().into(),
            room.room_economy.clone().unwrap_or_default().into(),
            room.guests
                .map(|guests| guests.to_string())
                .unwrap_or_default()
                .into(),
        ]);
    }
    Some(table)
}

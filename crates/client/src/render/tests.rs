//! Snapshots of the printed tables.

use jiff::civil::date;

use super::*;

fn price(units: i64) -> CellValue {
    CellValue::Price(Decimal::new(units * 100, 2))
}

fn february() -> Calendar {
    let value = |day: i8| match day {
        13 => CellValue::Incomplete,
        14 => CellValue::Empty,
        27.. => CellValue::Waiting,
        day => price(200 + (i64::from(day) * 7 % 23) * 5),
    };
    (3..=28)
        .map(|day| CalendarDay {
            date: date(2027, 2, day),
            value: value(day),
            note: None,
            is_old: false,
        })
        .collect()
}

#[test]
fn a_month_reads_like_a_calendar() {
    let months = february().months(false, 8);
    assert_eq!(months.len(), 1);
    insta::assert_snapshot!(format!("{}\n{}", months[0].0, months[0].1));
}

#[test]
fn an_implausible_price_is_in_brackets_and_never_the_cheapest() {
    let days = [(4, price(60).marked(true)), (5, price(200).marked(false))];
    let calendar = Calendar::from_iter(days.map(|(day, value)| CalendarDay {
        date: date(2027, 2, day),
        value,
        note: None,
        is_old: false,
    }));
    assert_eq!(
        calendar.cheapest().map(|(date, _)| date),
        Some(date(2027, 2, 5))
    );
    let month = calendar.months(false, 8)[0].1.to_string();
    assert!(month.contains("(60)"), "{month}");
}

#[test]
fn the_cheapest_is_the_earliest_of_equal_prices() {
    assert_eq!(
        february().cheapest().map(|(date, _)| date),
        Some(date(2027, 2, 23))
    );
    let equal = Calendar::from_iter([5, 4].map(|day| CalendarDay {
        date: date(2027, 2, day),
        value: price(9),
        note: None,
        is_old: false,
    }));
    assert_eq!(
        equal.cheapest().map(|(date, _)| date),
        Some(date(2027, 2, 4))
    );
    let absent = Calendar::from_iter([CalendarDay {
        date: date(2027, 2, 1),
        value: CellValue::Incomplete,
        note: None,
        is_old: false,
    }]);
    assert_eq!(absent.cheapest(), None);
}

#[test]
fn a_legend_has_the_marks_that_are_shown_and_fits_80_columns() {
    assert_eq!(
        legend(february().values(), false),
        "   * cheapest   – nothing offered   ? did not complete   · not searched yet"
    );
    let all = CellValue::MARKS
        .into_iter()
        .chain([price(1), price(60).marked(true)]);
    let all = legend(all, true);
    assert!(all.lines().all(|line| line.chars().count() < 80), "{all}");
    for word in ["refused", "× not searched", "(60) implausible", "green"] {
        assert!(all.contains(word), "{all}");
    }
    assert_eq!(legend([], false), "");
}

#[test]
fn tables_have_colour_only_on_request() {
    let coloured = february().months(true, 8)[0].1.to_string();
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    assert!(
        !february().months(false, 8)[0]
            .1
            .to_string()
            .contains('\u{1b}')
    );
}

#[test]
fn markets_stand_beside_their_baseline() {
    let market = |country: &str, value, room: Option<&str>| MarketRow {
        country: country.into(),
        value,
        room: room.map(str::to_owned),
        parity: None,
    };
    let markets = MarketTable {
        currency: "USD".into(),
        markets: vec![
            market("us", price(800), Some("Double Room")),
            market("de", price(752), Some("Double Room")),
            market("jp", price(884), Some("Deluxe Double")),
            market("in", CellValue::Incomplete, None),
            market("br", CellValue::Empty, None),
        ],
    };
    insta::assert_snapshot!(markets.table(false));
}

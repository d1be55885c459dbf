//! A look at a product, as short as adding up needs it, and how the looks of a day are packed: pure.
//!
//! Not here: who packs which days (`days`), what is added up (`sums`).

use jiff::Timestamp;
use jiff::civil::{Date, date};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::price::Price;
use crate::contract::SearchStatus;

/// The first byte of a packed day. Another form is another number, and a migration that has all days packed anew.
const FORM: u8 = 1;

/// A day of UTC, in microseconds.
const DAY: i64 = 24 * 3_600 * 1_000_000;
const EPOCH: Date = date(1970, 1, 1);

/// What is left of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// When, in microseconds since 1970.
    pub(super) at: i64,
    /// Departure or check-in, in days since 1970.
    first_date: i32,
    /// Return or check-out, where there is one.
    last_date: Option<i32>,
    pub(super) came: Came,
    /// The price, where there was one to go by.
    pub(super) price: Option<Price>,
    /// Bottom and top of the provider's band.
    pub(super) band: Band,
}

type Band = (Option<Price>, Option<Price>);

/// What a look came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// `ok` or `partial`: a price, if there is one, is one to go by.
    Answered,
    Empty,
    Degraded,
}

/// What a look is made from.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) observed_at: Timestamp,
    pub(super) first_date: Date,
    pub(super) last_date: Option<Date>,
    pub(super) status: SearchStatus,
    pub(super) price: Option<Decimal>,
    pub(super) band_low: Option<Decimal>,
    pub(super) band_high: Option<Decimal>,
}

/// The days of a journey or a stay that are asked for; `None`: any.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Dates {
    first_from: Option<i32>,
    first_to: Option<i32>,
    last: Option<i32>,
}

/// A packed day that this program cannot read: another version has written it.
#[derive(Debug, thiserror::Error)]
#[error("a packed day of the history is in no form that this version knows")]
pub(super) struct UnknownForm;

impl Look {
    pub(super) fn of(seen: &Seen) -> Self {
        let came = match seen.status {
            SearchStatus::Ok | SearchStatus::Partial => Came::Answered,
            SearchStatus::Empty => Came::Empty,
            SearchStatus::Degraded => Came::Degraded,
        };
        Self {
            at: seen.observed_at.as_microsecond(),
            first_date: day(seen.first_date),
            last_date: seen.last_date.map(day),
            came,
            price: seen
                .price
                .filter(|_| came == Came::Answered)
                .map(Price::from),
            band: (
                seen.band_low.map(Price::from),
                seen.band_high.map(Price::from),
            ),
        }
    }

    /// When its day began, in UTC.
    pub(super) fn day(&self) -> Timestamp {
        Timestamp::from_microsecond(self.at - self.at.rem_euclid(DAY)).unwrap_or(Timestamp::MIN)
    }

    pub(super) fn is_about(&self, dates: Dates) -> bool {
        dates.first_from.is_none_or(|from| self.first_date >= from)
            && dates.first_to.is_none_or(|to| self.first_date <= to)
            && dates.last.is_none_or(|last| self.last_date == Some(last))
    }
}

impl Dates {
    pub(super) fn of(first_from: Option<Date>, first_to: Option<Date>, last: Option<Date>) -> Self {
        Self {
            first_from: first_from.map(day),
            first_to: first_to.map(day),
            last: last.map(day),
        }
    }
}

fn day(date: Date) -> i32 {
    i32::try_from(date.duration_since(EPOCH).as_hours() / 24)
        .expect("the calendar has four million days")
}

// The first byte of a look in a packed day: what it came to in the lowest two bits, and which numbers follow after its time and first date.
const CAME: u8 = 0b0000_0011;
const ANSWERED: u8 = 0;
const EMPTY: u8 = 1;
const DEGRADED: u8 = 2;
/// The days from the first date to the last.
const LAST_DATE: u8 = 0b0000_0100;
const SHORT_PRICE: u8 = 0b0000_1000;
const LONG_PRICE: u8 = 0b0001_0000;
/// Bottom and top of the band, both short.
const SHORT_BAND: u8 = 0b0010_0000;
/// Any other band. Neither of both: the band of the look before.
const OTHER_BAND: u8 = 0b0100_0000;

/// Adds a look by what tells it from the one before it: some ten to fifteen bytes, most of them time and prices.
fn write(last: &Look, look: &Look, packed: Vec<u8>) -> Vec<u8> {
    let came = match look.came {
        Came::Answered => ANSWERED,
        Came::Empty => EMPTY,
        Came::Degraded => DEGRADED,
    };
    let last_date = if look.last_date.is_some() {
        LAST_DATE
    } else {
        0
    };
    let price = match look.price {
        None => 0,
        Some(Price::Short(_)) => SHORT_PRICE,
        Some(Price::Long(_)) => LONG_PRICE,
    };
    let band = match look.band {
        band if band == last.band => 0,
        (Some(Price::Short(_)), Some(Price::Short(_))) => SHORT_BAND,
        _ => OTHER_BAND,
    };
    let mut packed = packed;
    packed.push(came | last_date | price | band);
    packed = put(packed, look.at.wrapping_sub(last.at));
    packed = put(packed, look.first_date.wrapping_sub(last.first_date));
    if let Some(last_date) = look.last_date {
        packed = put(packed, last_date.wrapping_sub(look.first_date));
    }
    packed = match look.price {
        None => packed,
        Some(Price::Short(digits)) => put(packed, digits),
        Some(Price::Long(price)) => put(packed, price),
    };
    match look.band {
        (Some(Price::Short(low)), Some(Price::Short(high))) if band == SHORT_BAND => {
            put(packed, (low, high))
        }
        any if band == OTHER_BAND => put(packed, any),
        _ => packed,
    }
}

/// The look after `last`.
fn read(last: &Look, packed: &mut &[u8]) -> Result<Look, UnknownForm> {
    let (&head, rest) = packed.split_first().ok_or(UnknownForm)?;
    *packed = rest;
    let came = match head & CAME {
        ANSWERED => Came::Answered,
        EMPTY => Came::Empty,
        DEGRADED => Came::Degraded,
        _ => return Err(UnknownForm),
    };
    let at = last.at.wrapping_add(take(packed)?);
    let first_date = last.first_date.wrapping_add(take(packed)?);
    let last_date = if head & LAST_DATE == 0 {
        None
    } else {
        Some(first_date.wrapping_add(take(packed)?))
    };
    let price = match head & (SHORT_PRICE | LONG_PRICE) {
        0 => None,
        SHORT_PRICE => Some(Price::Short(take(packed)?)),
        LONG_PRICE => Some(Price::Long(take(packed)?)),
        _ => return Err(UnknownForm),
    };
    let band = match head & (SHORT_BAND | OTHER_BAND) {
        0 => last.band,
        SHORT_BAND => (
            Some(Price::Short(take(packed)?)),
            Some(Price::Short(take(packed)?)),
        ),
        OTHER_BAND => take(packed)?,
        _ => return Err(UnknownForm),
    };
    Ok(Look {
        at,
        first_date,
        last_date,
        came,
        price,
        band,
    })
}

fn put(packed: Vec<u8>, value: impl Serialize) -> Vec<u8> {
    postcard::to_extend(&value, packed).expect("numbers can always be written")
}

fn take<'a, Value: Deserialize<'a>>(packed: &mut &'a [u8]) -> Result<Value, UnknownForm> {
    let (value, rest) = postcard::take_from_bytes(packed).map_err(|_| UnknownForm)?;
    *packed = rest;
    Ok(value)
}

/// Before the first of a day.
const START: Look = Look {
    at: 0,
    first_date: 0,
    last_date: None,
    came: Came::Answered,
    price: None,
    band: (None, None),
};

/// The looks of a day in one value, in their order.
pub(super) fn pack(looks: &[Look]) -> Vec<u8> {
    let before = std::iter::once(&START).chain(looks);
    before
        .zip(looks)
        .fold(vec![FORM], |packed, (last, look)| write(last, look, packed))
}

/// The looks of a packed day, in the order in which they were packed. After an error there is nothing more.
pub(super) fn unpack(packed: &[u8]) -> impl Iterator<Item = Result<Look, UnknownForm>> + '_ {
    let (mut rest, mut last) = (packed.strip_prefix(&[FORM]), START);
    std::iter::from_fn(move || {
        if rest.is_some_and(<[u8]>::is_empty) {
            return None;
        }
        let look = rest
            .as_mut()
            .ok_or(UnknownForm)
            .and_then(|rest| read(&last, rest));
        match &look {
            Ok(look) => last = *look,
            Err(_) => rest = Some(&[]),
        }
        Some(look)
    })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;
    use crate::history::price::tests::decimal;

    fn seen() -> impl Strategy<Value = Seen> {
        let status = prop::sample::select(vec![
            SearchStatus::Ok,
            SearchStatus::Partial,
            SearchStatus::Empty,
            SearchStatus::Degraded,
        ]);
        let days = (
            -100_000_i32..2_000_000,
            prop::option::of(-100_000_i32..2_000_000),
        );
        let date = |day: i32| EPOCH + SignedDuration::from_hours(24 * i64::from(day));
        let time = any::<i64>()
            .prop_map(|at| Timestamp::from_microsecond(at % 200_000_000_000_000_000).unwrap());
        (
            time,
            days,
            status,
            prop::option::of(decimal()),
            prop::option::of(decimal()),
            prop::option::of(decimal()),
        )
            .prop_map(
                move |(observed_at, days, status, price, band_low, band_high)| Seen {
                    observed_at,
                    first_date: date(days.0),
                    last_date: days.1.map(date),
                    status,
                    price,
                    band_low,
                    band_high,
                },
            )
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_as_it_went_in(seen in prop::collection::vec(seen(), 0..80)) {
            let looks: Vec<_> = seen.iter().map(Look::of).collect();
            let unpacked: Vec<_> = unpack(&pack(&looks)).map(Result::unwrap).collect();
            prop_assert_eq!(&unpacked, &looks);
            for (look, seen) in unpacked.iter().zip(&seen) {
                let answered = matches!(seen.status, SearchStatus::Ok | SearchStatus::Partial);
                prop_assert_eq!(look.at, seen.observed_at.as_microsecond());
                let prices = [look.price, look.band.0, look.band.1].map(|price| price.map(Decimal::from));
                prop_assert_eq!(prices, [seen.price.filter(|_| answered), seen.band_low, seen.band_high]);
                let one = Dates::of(Some(seen.first_date), Some(seen.first_date), seen.last_date);
                prop_assert!(look.is_about(one));
            }
        }

        /// Whatever the bytes are, nothing is taken for what it is not, and it ends.
        #[test]
        fn what_was_not_packed_here_is_refused_or_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let read: Vec<_> = unpack(&bytes).collect();
            let errors = read.iter().filter(|look| look.is_err()).count();
            prop_assert!(errors <= 1 && read.iter().rev().skip(1).all(Result::is_ok));
            prop_assert!(bytes.first() == Some(&FORM) || read.len() == 1 && errors == 1);
        }
    }

    #[test]
    fn days_are_told_from_each_other() {
        let look = |first: Date, last: Option<Date>| {
            Look::of(&Seen {
                observed_at: Timestamp::UNIX_EPOCH,
                first_date: first,
                last_date: last,
                status: SearchStatus::Ok,
                price: None,
                band_low: None,
                band_high: None,
            })
        };
        let day = |day| date(2027, 1, day);
        for (dates, expected) in [
            (Dates::default(), true),
            (Dates::of(Some(day(14)), Some(day(14)), None), true),
            (Dates::of(Some(day(15)), None, None), false),
            (Dates::of(None, Some(day(13)), None), false),
            (Dates::of(None, None, Some(day(20))), true),
            (Dates::of(None, None, Some(day(21))), false),
        ] {
            assert_eq!(
                look(day(14), Some(day(20))).is_about(dates),
                expected,
                "{dates:?}"
            );
        }
        assert!(
            !look(day(14), None).is_about(Dates::of(None, None, Some(day(14)))),
            "one way has no return"
        );
    }
}

//! A small line without axes, for a row of a table.

use maud::{Markup, html};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::{Unit, path};

/// Its drawing area, with room for the dot at the last value.
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 28.0;
const MARGIN: f64 = 4.0;

/// The values in their order, evenly spaced; `None` is a gap. Without any value it is a dash. A
/// screen reader hears `what` with the range and the last value.
pub fn sparkline(what: &str, values: &[Option<Decimal>], unit: Unit<'_>) -> Markup {
    let known: Vec<_> = values.iter().flatten().copied().collect();
    let (Some(low), Some(high), Some(last)) =
        (known.iter().min(), known.iter().max(), known.last())
    else {
        return html! { span class="muted" { "–" } };
    };
    let text = format!(
        "{what}: lowest {}, highest {}, last {}",
        unit.label(*low),
        unit.label(*high),
        unit.label(*last)
    );
    let places = places(values, *low, *high);
    let line = path(
        places
            .iter()
            .map(|place| place.map(|(x, y)| format!("{x:.1} {y:.1}"))),
    );
    let end = places.iter().rev().flatten().next();
    html! {
        svg class="sparkline" role="img" aria-label=(text) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) height=(HEIGHT) {
            title { (text) }
            path class="chart-line" d=(line) {}
            @if let Some((x, y)) = end {
                circle class="chart-dot" cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="2.5" {}
            }
        }
    }
}

fn places(values: &[Option<Decimal>], low: Decimal, high: Decimal) -> Vec<Option<(f64, f64)>> {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let gaps = count(values.len().saturating_sub(1));
    let place = |place: usize, value: Option<Decimal>| {
        let across = if gaps == 0.0 {
            1.0
        } else {
            count(place) / gaps
        };
        let up = if high == low {
            Some(0.5)
        } else {
            let (above, height) = (value?.checked_sub(low)?, high.checked_sub(low)?);
            above.checked_div(height)?.to_f64()
        };
        value?;
        Some((
            MARGIN + across * (WIDTH - 2.0 * MARGIN),
            HEIGHT - MARGIN - up? * (HEIGHT - 2.0 * MARGIN),
        ))
    };
    values
        .iter()
        .enumerate()
        .map(|(at, value)| place(at, *value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: &[Option<i64>]) -> String {
        let values: Vec<_> = values
            .iter()
            .map(|value| value.map(Decimal::from))
            .collect();
        sparkline("Lowest fare of each run", &values, Unit::Money("USD")).into_string()
    }

    #[test]
    fn a_sparkline_goes_from_the_first_to_the_last_value() {
        let page = drawn(&[Some(10), Some(20), None, Some(15)]);
        assert!(
            page.contains(r#"d="M4.0 24.0L41.3 4.0M116.0 14.0""#),
            "{page}"
        );
        assert!(page.contains(r#"cx="116.0" cy="14.0""#));
        assert!(
            page.contains("Lowest fare of each run: lowest 10 USD, highest 20 USD, last 15 USD")
        );
    }

    #[test]
    fn the_highest_price_that_there_can_be_is_drawn() {
        let values = [Some(Decimal::new(1, 28)), Some(Decimal::MAX)];
        let page = sparkline("Prices", &values, Unit::Money("USD")).into_string();
        assert!(page.contains(r#"cx="116.0" cy="4.0""#), "{page}");
    }

    #[test]
    fn one_value_is_a_dot_and_none_is_a_dash() {
        assert!(drawn(&[Some(10)]).contains(r#"cx="116.0" cy="14.0""#));
        assert!(drawn(&[]).contains('–'));
        assert!(drawn(&[None, None]).contains('–'));
    }
}

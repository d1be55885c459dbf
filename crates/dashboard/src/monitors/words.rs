//! The time of a slot in the zone of its schedule.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

/// A time in the zone of its schedule, with the zone's name.
pub(crate) fn zoned(at: Timestamp, zone: &str) -> Markup {
    let known = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let local = at.to_zoned(known);
    html! {
        time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) data-zone=(zone) {
            (local.strftime("%a %-d %b, %H:%M")) " " span class="muted" { (zone_name(zone)) }
        }
    }
}

/// A zone's city: `Europe/London` is long for a table, and its rule is the same.
fn zone_name(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_shown_in_its_own_zone() {
        let page = zoned("2027-01-14T06:00:00Z".parse().unwrap(), "America/New_York").into_string();
        assert!(page.contains("Thu 14 Jan, 01:00"), "{page}");
        assert!(page.contains("New York"));
    }
}

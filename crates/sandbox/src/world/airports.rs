//! Real airports: code, name, city, country, position, time zone.
//!
//! Local time is standard time all year, which is enough for plausible timetables. The fictional
//! airports of the magic values ([`crate::magic_values`]) are in the Atlantic.

use std::sync::LazyLock;

use serde::Deserialize;

/// One airport. Latitude and longitude in degrees, `utc_minutes` the local standard time's offset.
#[derive(Debug, Deserialize)]
pub(crate) struct SandboxAirport {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) city: String,
    /// ISO 3166, lower-case.
    pub(crate) country: String,
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
    pub(crate) utc_minutes: i64,
}

impl SandboxAirport {
    /// The airport of an IATA code in any letter case.
    pub(crate) fn find(code: &str) -> Option<&'static Self> {
        AIRPORTS
            .iter()
            .chain(FICTIONAL.iter())
            .find(|airport| airport.code.eq_ignore_ascii_case(code))
    }

    /// `City (IATA)`, the form of gateway.md, rule 25.
    pub(crate) fn display(&self) -> String {
        format!("{} ({})", self.city, self.code)
    }

    /// Great-circle distance in kilometres.
    pub(crate) fn kilometres_to(&self, other: &Self) -> f64 {
        let (lat_a, lat_b) = (self.latitude.to_radians(), other.latitude.to_radians());
        let (half_lat, half_lon) = (
            (lat_b - lat_a) / 2.0,
            (other.longitude - self.longitude).to_radians() / 2.0,
        );
        let chord = half_lat.sin().powi(2) + lat_a.cos() * lat_b.cos() * half_lon.sin().powi(2);
        2.0 * 6_371.0 * chord.sqrt().min(1.0).asin()
    }

    /// The low-cost region of this airport.
    pub(crate) fn region(&self) -> Region {
        match (self.latitude, self.longitude) {
            (28.0..=72.0, -32.0..=45.0) => Region::Europe,
            (7.0..=72.0, -170.0..=-50.0) => Region::NorthAmerica,
            (-60.0..=13.0, -95.0..=-30.0) => Region::SouthAmerica,
            (-12.0..=46.0, 92.0..=146.0) => Region::EastAsia,
            (-48.0..=-10.0, 110.0..=180.0) => Region::Oceania,
            (5.0..=36.0, 45.0..=92.0) => Region::SouthAsia,
            _ => Region::Elsewhere,
        }
    }
}

/// A region of low-cost airlines. Europe includes the whole Mediterranean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Region {
    Europe,
    NorthAmerica,
    SouthAmerica,
    EastAsia,
    SouthAsia,
    Oceania,
    Elsewhere,
}

pub(crate) static AIRPORTS: LazyLock<Vec<SandboxAirport>> =
    LazyLock::new(|| super::table(include_str!("airports.csv")));

/// Airports of the magic values, each on an invented island, so that a distance gives it a price.
static FICTIONAL: LazyLock<Vec<SandboxAirport>> =
    LazyLock::new(|| super::table(include_str!("fictional_airports.csv")));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_well_formed() {
        let mut codes: Vec<_> = AIRPORTS
            .iter()
            .chain(FICTIONAL.iter())
            .map(|airport| &airport.code)
            .collect();
        assert!(AIRPORTS.len() >= 120, "{}", AIRPORTS.len());
        assert!(
            codes
                .iter()
                .all(|code| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()))
        );
        codes.sort_unstable();
        let before = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), before);
    }

    #[test]
    fn distances_are_great_circle_distances() {
        for (from, to, kilometres) in [
            ("TLV", "LHR", 3_590.0),
            ("LHR", "JFK", 5_540.0),
            ("SIN", "SYD", 6_300.0),
            ("SFO", "NRT", 8_230.0),
        ] {
            let distance = SandboxAirport::find(from)
                .expect(from)
                .kilometres_to(SandboxAirport::find(to).expect(to));
            assert!(
                (distance - kilometres).abs() / kilometres < 0.01,
                "{from}-{to}: {distance}"
            );
        }
    }

    #[test]
    fn a_code_is_found_in_any_case_with_its_display_form() {
        assert_eq!(
            SandboxAirport::find("tlv").expect("TLV").display(),
            "Tel Aviv (TLV)"
        );
        assert_eq!(
            SandboxAirport::find("ZZP").expect("ZZP").display(),
            "Partial Island (ZZP)"
        );
        assert!(SandboxAirport::find("QQQ").is_none());
    }
}

//! Time zones by their names.

use super::text::text;

/// Longer than any name of the IANA database.
const MAX_ZONE_CHARS: usize = 64;

text! {
    /// A time zone of the IANA database, written as there.
    pub struct Zone {
        allowed: "the name of an IANA time zone, such as \"Europe/London\" or \"UTC\"",
        accepts: |text| text.len() <= MAX_ZONE_CHARS && named(text).is_some(),
        forwards: |text| named(text).unwrap_or_default(),
        examples: ["Europe/London"],
        schema: { min_length: 1, max_length: MAX_ZONE_CHARS },
    }
}

impl Zone {
    /// The default.
    #[must_use]
    pub fn utc() -> Self {
        Self("UTC".to_owned())
    }
}

/// The name as the database of zones writes it: any case is taken, a file's path or an offset is none.
fn named(text: &str) -> Option<String> {
    let is_name = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
    let zone = jiff::tz::TimeZone::get(text).ok().filter(|_| is_name)?;
    zone.iana_name().map(str::to_owned)
}

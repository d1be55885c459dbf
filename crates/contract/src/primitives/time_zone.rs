//! Time zone names.

use super::text::text_type;

/// Longer than any name of the IANA database.
const MAX_ZONE_CHARS: usize = 64;

text_type! {
    /// The name of a time zone in the IANA database.
    pub struct TimeZoneName {
        expected: "the name of an IANA time zone, such as \"Europe/London\" or \"UTC\"",
        accepts: |text| text.len() <= MAX_ZONE_CHARS && canonical_name(text).is_some(),
        normalize: |text| canonical_name(text).unwrap_or_default(),
        examples: ["Europe/London"],
        schema: { min_length: 1, max_length: MAX_ZONE_CHARS },
    }
}

impl TimeZoneName {
    /// The default.
    pub fn utc() -> Self {
        Self("UTC".to_owned())
    }
}

/// The IANA spelling of a name in any case; `None` for file paths and offsets.
fn canonical_name(text: &str) -> Option<String> {
    let is_name = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
    let zone = jiff::tz::TimeZone::get(text).ok().filter(|_| is_name)?;
    zone.iana_name().map(str::to_owned)
}

//! A topic of ntfy for one phone: its name, and the codes that a camera reads (channels.md, rule 29).

use qrcode::{Color, EcLevel, QrCode};

/// The public server of ntfy. Nothing is sent to it before the first message of a channel.
pub const SERVER: &str = "https://ntfy.sh";

/// The light squares that cameras need around a code.
pub const EDGE: usize = 4;

/// What a person does with the topic, in this order.
pub const STEPS: [&str; 3] = [
    "Install the app ntfy from the phone's app store.",
    "Android: scan the code with the camera; the app subscribes.",
    "iPhone: press + in the app and enter the topic.",
];

/// The URL of a topic that whoever does not know it cannot guess: `secret` is random.
pub fn topic(secret: u128) -> String {
    format!("{SERVER}/fares-{secret:032x}")
}

/// The link by which the app for Android subscribes to the topic of a URL.
pub fn app_link(url: &str) -> String {
    url.replacen("https://", "ntfy://", 1)
}

/// The QR code of a text: its rows, in which true is dark, without the light edge around them. None for a
/// text that is too long.
pub fn code(text: &str) -> Option<Vec<Vec<bool>>> {
    let code = QrCode::with_error_correction_level(text, EcLevel::M).ok()?;
    let colors = code.to_colors();
    let rows = colors.chunks(code.width());
    let is_dark = |color: &Color| *color == Color::Dark;
    Some(rows.map(|row| row.iter().map(is_dark).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_all_its_random_bits_and_fits_into_a_code() {
        let url = topic(0x1f);
        assert_eq!(
            url,
            "https://ntfy.sh/fares-0000000000000000000000000000001f"
        );
        assert_eq!(app_link(&url), url.replace("https", "ntfy"));
        let rows = code(&app_link(&url)).unwrap();
        assert!(rows.iter().all(|row| row.len() == rows.len()));
        // The finder at the upper left: seven dark squares, and light ones within.
        assert_eq!(
            rows[0][..8],
            [true, true, true, true, true, true, true, false]
        );
        assert_eq!(
            rows[1][..8],
            [true, false, false, false, false, false, true, false]
        );
        assert_eq!(code(&"x".repeat(3_000)), None);
    }
}

//! A topic of ntfy for one phone: its name, and the codes that a camera reads (channels.md, rule 29).

use qrcode::render::svg;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// The public server of ntfy. Nothing is sent to it before the first message of a channel.
pub const SERVER: &str = "https://ntfy.sh";

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

/// The QR code of a text as an `svg` element, dark on white: cameras expect that. None for a text that is too
/// long.
pub fn picture(text: &str) -> Option<String> {
    let picture = code(text)?.render::<svg::Color>().build();
    picture.find("<svg").map(|at| picture[at..].to_owned())
}

/// The same for a dark terminal: half blocks, which are the light squares.
pub fn blocks(text: &str) -> Option<String> {
    let code = code(text)?;
    let mut picture = code.render::<Dense1x2>();
    let inverted = picture
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark);
    Some(inverted.build())
}

fn code(text: &str) -> Option<QrCode> {
    QrCode::with_error_correction_level(text, EcLevel::M).ok()
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
        let link = app_link(&url);
        assert_eq!(link, url.replace("https", "ntfy"));
        let picture = picture(&link).unwrap();
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>"));
        let blocks = blocks(&link).unwrap();
        let lines: Vec<_> = blocks.lines().map(|line| line.chars().count()).collect();
        // Four light squares on each side, and two rows in a line.
        assert_eq!((lines.len(), lines[0]), (19, 37), "{blocks}");
        assert!(lines.iter().all(|width| *width == lines[0]));
        assert!(code(&"x".repeat(3_000)).is_none());
    }
}

//! When a monitor notifies, in words.

use farescan_contract::monitors::NotifySettings;

/// When alerts are sent: `Alerts are sent once a day, at 08:00 Europe/London.`
pub fn notify(notify: &NotifySettings, zone: &str) -> String {
    let quiet = notify.quiet_hours.as_ref().map(|quiet| {
        let (from, until) = (quiet.from.as_str(), quiet.until.as_str());
        format!("between {from} and {until} {zone}")
    });
    match (&notify.digest_at, quiet) {
        (Some(at), None) => format!("Alerts are sent once a day, at {} {zone}.", at.as_str()),
        (Some(at), Some(quiet)) => format!(
            "Alerts are sent once a day, at {}, never {quiet}.",
            at.as_str()
        ),
        (None, quiet) => format!(
            "Alerts {} are sent together when these hours end.",
            quiet.unwrap_or_default()
        ),
    }
}

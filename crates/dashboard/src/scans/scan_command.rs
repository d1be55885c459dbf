//! The body of a scan as the command `farescan scan`.

use serde_json::{Map, Value};

use farescan_core::contract::Endpoint;

/// The command that submits this body; `None` if the command line has no words for it, as for
/// markets of a place.
pub(super) fn of(body: &Map<String, Value>) -> Option<String> {
    let part = |name: &str| {
        let part = body.get(name).and_then(Value::as_object);
        part.cloned().unwrap_or_default()
    };
    // A watch is for the runs of a monitor.
    if part("strategy").contains_key("watch") {
        return None;
    }
    let (mut request, mut sweep) = (part("request"), part("sweep"));
    let mut words = vec!["farescan".to_owned(), "scan".to_owned()];
    let mut take = |name: &str| {
        sweep
            .shift_remove(name)
            .or_else(|| request.shift_remove(name))
    };
    let endpoint = Endpoint::parse(body.get("endpoint")?.as_str()?)?;
    match endpoint {
        Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => {
            let is_oneway = endpoint == Endpoint::FlightsOneway;
            words.push(if is_oneway { "oneway" } else { "roundtrip" }.to_owned());
            words.push(list(&take("from_airport")?)?);
            words.push(list(&take("to_airport")?)?);
            words.extend(dates("--depart", &take("departure_date")?)?);
            if !is_oneway {
                words.extend(["--nights".to_owned(), list(&take("nights")?)?]);
            }
        }
        Endpoint::HotelsByName => {
            words.extend(["hotel".to_owned(), list(&take("hotel_name")?)?]);
            words.extend(dates("--checkin", &take("checkin_date")?)?);
            words.extend(["--nights".to_owned(), list(&take("nights")?)?]);
            if let Some(markets) = take("proxy_country") {
                words.extend(["--markets".to_owned(), list(&markets)?]);
            }
            if let Some(samples) = take("samples") {
                words.extend(["--samples".to_owned(), list(&samples)?]);
            }
        }
        Endpoint::HotelsSearch | Endpoint::HotelsRooms | Endpoint::HotelsResolve => return None,
    }
    if !sweep.is_empty() {
        return None;
    }
    for (name, value) in &request {
        words.push("--set".to_owned());
        words.push(match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        });
    }
    options(body, &mut words);
    let quoted: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    Some(quoted.join(" "))
}

fn options(body: &Map<String, Value>, words: &mut Vec<String>) {
    let number = |part: &str, name: &str| body.get(part)?.get(name).map(Value::to_string);
    let text = |name: &str| body.get(name).and_then(list);
    let given = [
        ("--max-requests", text("max_requests")),
        ("--max-age", text("max_age_seconds").map(|age| age + "s")),
        ("--attempts", number("retry", "max_attempts")),
        (
            "--find",
            body.get("strategy")
                .and_then(|strategy| list(strategy.get("find")?)),
        ),
        ("--below", number("strategy", "below")),
        ("--max-risk", number("strategy", "max_risk")),
        ("--label", text("label")),
    ];
    for (option, value) in given {
        words.extend(
            value
                .into_iter()
                .flat_map(|value| [option.to_owned(), value]),
        );
    }
    for tag in body
        .get("tags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        words.extend(
            list(tag)
                .into_iter()
                .flat_map(|tag| ["--tag".to_owned(), tag]),
        );
    }
}

/// A scalar, or several with commas.
fn list(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(values) => {
            let values: Option<Vec<_>> = values.iter().map(list).collect();
            values.map(|values| values.join(","))
        }
        _ => None,
    }
}

fn dates(option: &str, value: &Value) -> Option<Vec<String>> {
    let mut words = vec![option.to_owned()];
    match value {
        Value::Object(range) => {
            let end = |name: &str| range.get(name).and_then(Value::as_str);
            words.push(format!("{}..{}", end("from")?, end("to")?));
            if let Some(step) = range.get("step_days") {
                words.extend(["--step".to_owned(), list(step)?]);
            }
            if let Some(days) = range.get("weekdays") {
                words.extend(["--weekdays".to_owned(), list(days)?]);
            }
        }
        other => words.push(list(other)?),
    }
    Some(words)
}

/// One word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ",.-_/:=@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn command(body: Value) -> Option<String> {
        match body {
            Value::Object(body) => of(&body),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_body_is_a_command_with_quoted_words() {
        for (body, expected) in [
            (
                json!({
                    "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "max_stops": 0},
                    "sweep": {"to_airport": ["LHR", "CDG"],
                              "departure_date": {"from": "2027-02-01", "to": "2027-02-28", "weekdays": ["thu", "fri"]}},
                    "label": "it's February", "max_requests": 40, "max_age_seconds": 3600, "retry": {"max_attempts": 2}
                }),
                Some(
                    r"farescan scan oneway TLV LHR,CDG --depart 2027-02-01..2027-02-28 --weekdays thu,fri --set max_stops=0 --max-requests 40 --max-age 3600s --attempts 2 --label 'it'\''s February'",
                ),
            ),
            (
                json!({
                    "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts", "checkin_date": "2027-02-01"},
                    "sweep": {"nights": [3, 7], "proxy_country": ["us", "de"], "samples": 3}
                }),
                Some(
                    "farescan scan hotel 'Hotel Arts' --checkin 2027-02-01 --nights 3,7 --markets us,de --samples 3",
                ),
            ),
            (
                json!({"endpoint": "hotels/search", "request": {"destination": "Rome"}}),
                None,
            ),
        ] {
            assert_eq!(command(body).as_deref(), expected);
        }
    }
}

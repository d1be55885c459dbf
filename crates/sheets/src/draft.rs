//! A scan as a person enters it, by a form or by flags: the parts of a body of `POST /v1/scans`.
//!
//! Nothing is checked here: what is no number stays text, which the API refuses with all other
//! faults. A field of a form is named as in the API, and so are [`OPTIONS`].

mod command;
mod entered;

use farescan_contract::scans::{Scan, StrategyProgress};
use farescan_contract::{Endpoint, FieldKind, FieldSpec};
use jiff::civil::Date;
use serde_json::{Map, Value, json};

pub use command::shell_word;
pub use entered::{entered, number, numbers, plain};

/// The fields of a body beside its searches that forms and flags have: the name, the object that it
/// is in, and the flag.
const OPTIONS: [(&str, Option<&str>, &str); 9] = [
    ("label", None, "--label"),
    ("tags", None, "--tag"),
    ("max_requests", None, "--max-requests"),
    ("max_age_seconds", None, "--max-age"),
    ("max_attempts", Some("retry"), "--attempts"),
    ("watch", Some("strategy"), "--watch"),
    ("find", Some("strategy"), "--find"),
    ("max_risk", Some("strategy"), "--max-risk"),
    ("below", Some("strategy"), "--below"),
];

/// A scan before it is checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanDraft {
    pub endpoint: Endpoint,
    /// The fields that all its searches share.
    pub request: Map<String, Value>,
    /// The fields with several values, `nights` and `samples`.
    pub sweep: Map<String, Value>,
    /// The rest of the body.
    pub options: Map<String, Value>,
}

impl ScanDraft {
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            request: Map::new(),
            sweep: Map::new(),
            options: Map::new(),
        }
    }

    /// The parts of a body; `None` without an endpoint.
    pub fn of(body: &Map<String, Value>) -> Option<Self> {
        let mut options = body.clone();
        let endpoint = Endpoint::parse(options.shift_remove("endpoint")?.as_str()?)?;
        let mut part = |name: &str| match options.shift_remove(name) {
            Some(Value::Object(part)) => part,
            _ => Map::new(),
        };
        Some(Self {
            endpoint,
            request: part("request"),
            sweep: part("sweep"),
            options,
        })
    }

    /// The body.
    pub fn into_body(self) -> Map<String, Value> {
        let mut body = Map::from_iter([
            ("endpoint".to_owned(), json!(self.endpoint)),
            ("request".to_owned(), self.request.into()),
        ]);
        if !self.sweep.is_empty() {
            body.insert("sweep".to_owned(), self.sweep.into());
        }
        body.extend(self.options);
        body
    }

    /// Sets a field; `None` leaves it absent.
    pub fn set(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.request.insert(name.to_owned(), value.into());
        }
    }

    /// Sets a field to one value, or sweeps it over several.
    pub fn vary(&mut self, name: &str, values: impl IntoIterator<Item = impl Into<Value>>) {
        let mut values: Vec<Value> = values.into_iter().map(Into::into).collect();
        if values.len() > 1 {
            self.sweep.insert(name.to_owned(), values.into());
        } else {
            self.set(name, values.pop());
        }
    }

    /// Sets a field to the text of a form. Several values with commas are swept.
    pub fn enter(&mut self, field: &FieldSpec, text: &str) {
        let parts: Vec<_> = entered::list(text).collect();
        // A name may contain a comma.
        let is_name = matches!(field.name, "hotel_name" | "destination" | "area");
        let value = |text: &str| entered::value(field, text);
        match (field.kind, parts.len()) {
            (FieldKind::List, _) => self.set(field.name, Some(entered::values(field, &parts))),
            (FieldKind::Scalar, 2..) if !is_name => {
                self.vary(field.name, parts.into_iter().map(value));
            }
            _ => self.set(field.name, Some(value(text))),
        }
    }

    /// Sets those of [`OPTIONS`] that have a text.
    pub fn enter_options<'a>(&mut self, text: impl Fn(&str) -> Option<&'a str>) {
        for (name, object, _) in OPTIONS {
            let Some(text) = text(name) else { continue };
            let value: Value = match name {
                "label" => text.into(),
                "tags" => entered::list(text).collect(),
                _ => number(text),
            };
            match object {
                Some(object) => {
                    let object = self.options.entry(object).or_insert_with(|| json!({}));
                    object[name] = value;
                }
                None => _ = self.options.insert(name.to_owned(), value),
            }
        }
    }

    /// The given [`OPTIONS`] as the texts of a form.
    pub fn option_pairs(&self) -> impl Iterator<Item = (String, String)> {
        OPTIONS.iter().filter_map(|(name, object, _)| {
            let value = self.option(name, *object)?;
            Some(((*name).to_owned(), entered(value)))
        })
    }

    fn option(&self, name: &str, object: Option<&str>) -> Option<&Value> {
        match object {
            Some(object) => self.options.get(object)?.get(name),
            None => self.options.get(name),
        }
    }

    /// The texts of the form of a scan: the reverse of [`Self::enter`] and [`Self::enter_options`]. A
    /// date is two fields, `<name>.from` and `<name>.to`.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        let mut pairs = vec![("endpoint".to_owned(), self.endpoint.to_string())];
        for (name, value) in self.request.iter().chain(&self.sweep) {
            let field = self.endpoint.field(name);
            match value {
                Value::Object(range) if range.contains_key("from") => {
                    for (part, value) in range {
                        let is_end = ["from", "to"].contains(&part.as_str());
                        let name = if is_end {
                            format!("{name}.{part}")
                        } else {
                            part.clone()
                        };
                        let values = value
                            .as_array()
                            .map_or(std::slice::from_ref(value), Vec::as_slice);
                        pairs.extend(values.iter().map(|value| (name.clone(), entered(value))));
                    }
                }
                Value::String(day) if field.is_some_and(|field| field.kind == FieldKind::Date) => {
                    pairs.push((format!("{name}.from"), day.clone()));
                }
                _ => pairs.push((name.clone(), entered(value))),
            }
        }
        pairs.extend(self.option_pairs());
        pairs
    }

    /// Takes the value of a field, swept or not.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let swept = self.sweep.shift_remove(name);
        swept.or_else(|| self.request.shift_remove(name))
    }

    /// A fixed date as a sweep of one date, and a fixed stay as its nights.
    pub fn sweep_dates(&mut self) {
        let Some(first) = date_fields(self.endpoint).next() else {
            return;
        };
        let Some(from) = self.request.shift_remove(first) else {
            return;
        };
        if let Some(last) = date_fields(self.endpoint).nth(1) {
            let date = |value: &Value| value.as_str()?.parse::<Date>().ok();
            let until = self.request.get(last).and_then(date);
            if let Some((from, until)) = date(&from).zip(until) {
                self.request.shift_remove(last);
                let nights = (until - from).get_days();
                self.sweep.insert("nights".to_owned(), json!([nights]));
            }
        }
        self.sweep
            .insert(first.to_owned(), json!({"from": from, "to": from}));
    }
}

/// The submission of a scan like this one.
impl From<&Scan> for ScanDraft {
    fn from(scan: &Scan) -> Self {
        let strategy = scan.strategy.as_ref().map(StrategyProgress::request);
        let tags = Some(&scan.tags).filter(|tags| !tags.is_empty());
        let options = [
            ("label", json!(scan.label)),
            ("tags", json!(tags)),
            ("max_requests", json!(scan.requests.max)),
            ("max_age_seconds", json!(scan.max_age_seconds)),
            ("strategy", json!(strategy)),
        ];
        let given = options.into_iter().filter(|(_, value)| !value.is_null());
        Self {
            endpoint: scan.endpoint,
            request: scan.request.clone(),
            sweep: scan.sweep.clone(),
            options: given
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
}

/// The date fields of an endpoint: the first, and the end of a stay.
pub fn date_fields(endpoint: Endpoint) -> impl Iterator<Item = &'static str> {
    let dates = endpoint
        .fields()
        .iter()
        .filter(|field| field.kind == FieldKind::Date);
    dates.map(|field| field.name)
}

/// A range of dates of a sweep.
pub fn date_range(from: &str, to: &str, step: Option<Value>, weekdays: &[&str]) -> Value {
    let mut range = json!({"from": from, "to": to});
    if let Some(step) = step {
        range["step_days"] = step;
    }
    if !weekdays.is_empty() {
        range["weekdays"] = json!(weekdays);
    }
    range
}

/// One amount is that of a watch for it and of its rule `price_below`, whichever of them names it.
pub fn share_amount(scan: &mut Map<String, Value>, alerts: &mut Vec<Value>) {
    let Some(strategy) = scan.get_mut("strategy").filter(|of| of["watch"] == "below") else {
        return;
    };
    let rule = alerts.iter().find(|rule| rule["type"] == "price_below");
    match (
        strategy.get("below"),
        rule.and_then(|rule| rule.get("amount")),
    ) {
        (None, Some(amount)) => strategy["below"] = amount.clone(),
        (Some(below), None) => {
            alerts.insert(0, json!({"type": "price_below", "amount": below}));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_that_of_the_watch_and_of_its_rule() {
        let below = json!({"watch": "below", "below": 150});
        let rule = json!({"type": "price_below", "amount": 150});
        let other = json!({"type": "new_low", "days": 30});
        for (strategy, alerts, expected) in [
            (
                below.clone(),
                vec![other.clone()],
                (below.clone(), vec![rule.clone(), other]),
            ),
            (
                json!({"watch": "below"}),
                vec![rule.clone()],
                (below, vec![rule]),
            ),
            (
                json!({"watch": "below"}),
                vec![],
                (json!({"watch": "below"}), vec![]),
            ),
            (
                json!({"watch": "cheapest"}),
                vec![],
                (json!({"watch": "cheapest"}), vec![]),
            ),
        ] {
            let mut scan = Map::from_iter([("strategy".to_owned(), strategy)]);
            let mut shared = alerts;
            share_amount(&mut scan, &mut shared);
            assert_eq!((scan["strategy"].clone(), shared), expected);
        }
    }
}

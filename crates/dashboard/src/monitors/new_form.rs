//! The fields of a new monitor, and the request that they make.

use farescan_sheets::draft::{ScanDraft, date_fields, date_range, number, numbers, share_amount};
use farescan_sheets::rule;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::channel_choice;
use crate::form::FormFields;
use crate::once;
use crate::suggestions::{self, Suggestions};
use farescan_core::contract::channels::Channel;
use farescan_core::contract::monitors::{MonitorRequest, RuleType};
use farescan_core::contract::scans::ScanEndpoint;
use farescan_core::contract::{
    Api, Endpoint, FieldError, FieldValue as _, MAX_DEPTH, ValidationError, ValidationErrors,
    read_object,
};

/// How often a monitor can run without a cron text of its own.
pub(super) const REPEATS: [(&str, &str); 6] = [
    ("daily", "Every day"),
    ("weekdays", "Mondays to Fridays"),
    ("weekly", "Every Monday"),
    ("hours12", "Every 12 hours"),
    ("hours6", "Every 6 hours"),
    ("cron", "As the cron text below says"),
];

/// What each run looks at: everything, or where the answer to a question may have changed.
const WATCHES: [(&str, &str); 3] = [
    ("", "searches everything"),
    ("cheapest", "watches the cheapest"),
    ("below", "watches for an amount"),
];

/// The fields of a search that the form has.
pub(super) const SEARCH_FIELDS: [&str; 7] = [
    "from_airport",
    "to_airport",
    "hotel_name",
    "destination",
    "hotel_booking_id",
    "currency",
    "proxy_country",
];

/// The rules that the form has, each with its field.
pub(super) const RULES: [(&str, RuleType); 10] = [
    ("price_below", RuleType::PriceBelow),
    ("drop_percent", RuleType::DropPercent),
    ("percentile_at_most", RuleType::PercentileAtMost),
    ("new_low_days", RuleType::NewLow),
    ("verdict", RuleType::Verdict),
    ("available", RuleType::Available),
    ("sold_out", RuleType::SoldOut),
    ("stale", RuleType::Stale),
    ("back_in_stock", RuleType::BackInStock),
    ("every_run", RuleType::EveryRun),
];

/// The step that also replays the rules on the past, and the section with its outcome.
pub(super) const BACKTEST: &str = "backtest";
/// The field with its days.
pub(super) const DAYS: &str = "backtest_days";

/// The part of the form with channels and the webhook.
pub(super) const WHERE_TO: &str = "where-to";

/// The form of a monitor: a new one, or one that is changed.
pub(super) struct MonitorForm<'a> {
    /// The path that it is sent to.
    pub(super) action: &'a str,
    /// What was entered.
    pub(super) fields: &'a FormFields,
    /// What is wrong with it.
    pub(super) errors: &'a [FieldError],
    /// Hidden fields.
    pub(super) hidden: Markup,
    /// The text of its button.
    pub(super) button: &'a str,
    /// Airports, hotels and places of the caller's own searches.
    pub(super) suggestions: &'a Suggestions,
    /// The caller's channels.
    pub(super) channels: &'a [Channel],
}

/// The request of `POST /v1/monitors` that the fields make. The API's own code validates it.
///
/// # Errors
/// Only text that is meant to be JSON and is not.
pub(super) fn body(fields: &FormFields) -> Result<Map<String, Value>, ValidationErrors> {
    let mut scan = match fields.text("scan") {
        Some(text) => read_object(text.as_bytes(), MAX_DEPTH)?,
        None => scan(fields)?,
    };
    let rules = match fields.text("rules") {
        Some(text) => serde_json::from_str(text).map_err(|_| {
            ValidationError::new(
                "alerts",
                &text.into(),
                "a list of rules in JSON, as in the API",
            )
        })?,
        None => Value::Array(alerts(fields, &mut scan)),
    };
    let name = fields.text("name").unwrap_or_default();
    let timezone = fields.text("timezone").unwrap_or("UTC");
    let mut body = MonitorRequest::draft(name, [&cron(fields), timezone], scan, rules);
    body.insert("channels".to_owned(), channel_choice::ids(fields));
    if let Some(url) = fields.text("webhook_url") {
        body.insert("webhook_url".to_owned(), url.into());
    }
    if let Some(limit) = fields.text("max_requests_per_month") {
        body.insert("max_requests_per_month".to_owned(), number(limit));
    }
    Ok(body)
}

/// Five cron fields from the choice and the time of day.
pub(super) fn cron(fields: &FormFields) -> String {
    let time = fields.text("time").unwrap_or("06:00");
    let (hour, minute) = time.split_once(':').unwrap_or((time, "0"));
    let plain = |part: &str| {
        part.parse::<u8>()
            .map_or_else(|_| part.to_owned(), |part| part.to_string())
    };
    let (hour, minute) = (plain(hour), plain(minute));
    match fields.text("repeat").unwrap_or(REPEATS[0].0) {
        "weekdays" => format!("{minute} {hour} * * mon-fri"),
        "weekly" => format!("{minute} {hour} * * mon"),
        "hours12" => format!("{minute} */12 * * *"),
        "hours6" => format!("{minute} */6 * * *"),
        "cron" => fields.text("cron").unwrap_or_default().to_owned(),
        _ => format!("{minute} {hour} * * *"),
    }
}

fn scan(fields: &FormFields) -> Result<Map<String, Value>, ValidationErrors> {
    let endpoint = fields.text("endpoint").unwrap_or("flights/oneway");
    let endpoint = ScanEndpoint::read(&endpoint.into());
    let endpoint = endpoint.map_err(|wrong| wrong.prefix("scan.endpoint"))?;
    let mut draft = ScanDraft::new(endpoint.get());
    if let Some(text) = fields.text("fields") {
        draft.request = read_object(text.as_bytes(), MAX_DEPTH)?;
    }
    let mut dates = date_fields(draft.endpoint);
    let (first, last) = (fields.text("first"), fields.text("last"));
    if let (Some(date), Some(first)) = (dates.next(), first.or(last)) {
        let range = date_range(first, last.unwrap_or(first), None, &[]);
        draft.sweep.insert(date.to_owned(), range);
    }
    if let (Some(_), Some(nights)) = (dates.next(), fields.text("nights")) {
        draft.sweep.insert("nights".to_owned(), numbers(nights));
    }
    if let (Api::Hotels, Some(samples)) = (draft.endpoint.api(), fields.text("samples")) {
        draft.sweep.insert("samples".to_owned(), number(samples));
    }
    for name in SEARCH_FIELDS {
        if let (Some(field), Some(text)) = (draft.endpoint.field(name), fields.text(name)) {
            draft.enter(field, text);
        }
    }
    let is_below = fields.text("watch") == Some("below");
    draft.enter_options(|name| match name {
        "watch" | "max_requests" => fields.text(name),
        "below" if is_below => fields.text(name),
        _ => None,
    });
    Ok(draft.into_body())
}

/// The rules of the fields. A scan of fields gets the amount of its watch from them, or gives it to
/// them.
fn alerts(fields: &FormFields, scan: &mut Map<String, Value>) -> Vec<Value> {
    let given = RULES
        .iter()
        .filter_map(|(field, rule)| Some((*rule, fields.text(field)?)));
    let mut rules: Vec<_> = given
        .map(|(rule, text)| rule::entered(rule, text))
        .collect();
    if fields.text("scan").is_none() {
        share_amount(scan, &mut rules);
    }
    if fields.text("scope") == Some("cell") {
        // `back_in_stock` is about each date or market, unless its scope says otherwise. A report has no scope.
        let has_scope =
            |rule: &&mut Value| rule["type"] != "back_in_stock" && rule["type"] != "every_run";
        for rule in rules.iter_mut().filter(has_scope) {
            rule["scope"] = "cell".into();
        }
    }
    rules
}

/// What is wrong with a form.
pub(super) fn error_notice(errors: &[FieldError]) -> Markup {
    html! {
        @if !errors.is_empty() {
            div class="notice bad" role="alert" {
                "Please correct:"
                ul {
                    @for error in errors {
                        @if error.field == "scan.strategy.below" && error.found.is_none() {
                            li { "Amount: enter the price that the watch is for, such as 150" }
                        } @else {
                            li { code { (error.field) } @if let Some(found) = &error.found { ": found " (found) } ", expected " (error.expected) }
                        }
                    }
                }
            }
        }
    }
}

/// Inputs with what was entered in them and whether it is wrong.
struct Inputs<'a> {
    fields: &'a FormFields,
    errors: &'a [FieldError],
}

impl Inputs<'_> {
    /// Whether an error is about one of the fields `parts`, which `|` separates.
    fn is_wrong(&self, parts: &str) -> bool {
        parts.split('|').any(|part| {
            let inner = format!(".{part}");
            let is_it = |field: &str| field == part || field.contains(&inner);
            self.errors.iter().any(|error| is_it(&error.field))
        })
    }

    fn text(&self, name: &'static str, label: &str, hint: &str, parts: &str) -> Markup {
        let value = self.fields.text(name).unwrap_or_default();
        html! {
            div class={ "field" (only_for(name)) } {
                label for=(name) { (label) }
                input id=(name) name=(name) value=(value) aria-invalid=[self.is_wrong(parts).then_some("true")] aria-describedby=(format!("{name}-hint")) list=[suggestions::list_of(name)];
                span class="hint" id=(format!("{name}-hint")) { (hint) }
            }
        }
    }

    fn check(&self, name: &'static str, label: &str) -> Markup {
        html! { label { input type="checkbox" name=(name) value="yes" checked[self.fields.text(name).is_some()]; (label) } }
    }
}

/// The form with what was entered and what is wrong with it.
pub(super) fn markup(form: &MonitorForm<'_>) -> Markup {
    let inputs = Inputs {
        fields: form.fields,
        errors: form.errors,
    };
    html! {
        form method="post" action=(form.action) class="monitor-form" {
            (form.hidden)
            (form.suggestions.markup())
            section class="card" { (what_is_searched(&inputs)) }
            section class="card" { (when(&inputs)) }
            section class="card" { (when_to_alert(&inputs)) }
            section class="card" id=(WHERE_TO) {
                h2 { "Where to, and how much at most" }
                (channel_choice::markup(form.channels, form.fields))
                div class="fields" {
                    (inputs.text("webhook_url", "Webhook", "An https URL that gets the alerts as events", "webhook_url"))
                    (inputs.text("max_requests_per_month", "Most requests a month", "A slot whose run does not fit is skipped", "max_requests_per_month"))
                }
            }
            div class="actions" {
                button class="primary" type="submit" name="step" value="check" { (form.button) }
                button type="submit" name="step" value=(BACKTEST) formaction={ (form.action) "#" (BACKTEST) } { "What would this have reported?" }
                span class="hint" { "Nothing is stored and nothing is searched yet." }
            }
        }
    }
}

fn what_is_searched(inputs: &Inputs<'_>) -> Markup {
    html! {
        h2 { "What is searched" }
        @let name = inputs.text("name", "Name", "For lists and alerts", "name");
        @if inputs.fields.text("scan").is_some() {
            div class="fields" { (name) }
            p class="notice" { "The whole search stands below as JSON." }
            details class="fold" {
                summary { "Fields, which the JSON replaces" }
                (search_fields(inputs, &html! {}))
            }
        } @else { (search_fields(inputs, &name)) }
        (more_fields(inputs.fields))
    }
}

/// The fields of a search, after those of `first`.
fn search_fields(inputs: &Inputs<'_>, first: &Markup) -> Markup {
    html! {
        div class="fields" {
            (first)
            (select("endpoint", "Search", &endpoints(), inputs.fields.text("endpoint")))
            (inputs.text("from_airport", "From", "Airport, such as TLV", "from_airport"))
            (inputs.text("to_airport", "To", "Airport, such as LHR", "to_airport"))
            (inputs.text("hotel_name", "Hotel", "The hotel's name", "hotel_name"))
            (inputs.text("destination", "Place", "City or area", "destination"))
            (inputs.text("hotel_booking_id", "Hotel id", "From resolve, such as pt/grand-hotel", "hotel_booking_id"))
            (inputs.text("first", "First date", "2027-01-14, or +7d for seven days after each run", "departure_date|checkin_date"))
            (inputs.text("last", "Last date", "2027-01-31, or +36d", "departure_date|checkin_date"))
            (inputs.text("nights", "Nights", "3, or 3, 7", "nights"))
            (inputs.text("currency", "Currency", "USD without one", "currency"))
            (inputs.text("proxy_country", "Markets", "us, or us, de, gb", "proxy_country"))
            (inputs.text("samples", "Samples", "Of each search, such as 3, to know chance from difference", "samples"))
        }
        (watch_fields(inputs.fields, &[
            inputs.text("below", "Amount", "In the currency of the search; a price below it alerts", "below"),
            inputs.text("max_requests", "Most requests of a run", "A watch needs it, such as 18 for 90 dates", "scan.max_requests"),
        ]))
    }
}

fn when(inputs: &Inputs<'_>) -> Markup {
    html! {
        h2 { "When" }
        div class="fields" {
            (select("repeat", "Runs", &REPEATS, inputs.fields.text("repeat")))
            div class="field" {
                label for="time" { "At" }
                input id="time" name="time" type="time" value=(inputs.fields.text("time").unwrap_or("06:00"));
                span class="hint" { "Every 6 or 12 hours: only the minute is used" }
            }
            div class="field" {
                label for="timezone" { "Time zone" }
                input id="timezone" name="timezone" value=(inputs.fields.text("timezone").unwrap_or("UTC")) aria-invalid=[inputs.is_wrong("timezone").then_some("true")];
                span class="hint" { "IANA name, such as Europe/London" }
            }
            (inputs.text("cron", "Cron text", "Minute hour day month weekday: 30 7 * * mon-fri", "schedule.cron"))
        }
    }
}

fn when_to_alert(inputs: &Inputs<'_>) -> Markup {
    html! {
        h2 { "When to alert" }
        p class="sub" { "Prices are those of the whole run, in its currency. Leave everything empty to only collect prices." }
        div class="fields" {
            (inputs.text("price_below", "Price below", "An amount; a watch for an amount has its own", "amount"))
            (inputs.text("drop_percent", "Drop by percent", "Below the lowest of the last 7 runs", "percent"))
            (inputs.text("percentile_at_most", "Among the cheapest percent", "Of your own past prices, such as 20", "percentile"))
            (inputs.text("new_low_days", "Lowest of days", "Such as 30: of the same dates, from any scan; not for one date such as +30d", "days"))
            (inputs.text("stale", "Runs without an answer", "A number of runs", "runs"))
            (select("scope", "Judged", &[("scan", "The best price of a run"), ("cell", "Each date or market alone")], inputs.fields.text("scope")))
        }
        div class="choices" {
            (inputs.check("verdict", "The provider calls it low (flights)"))
            (inputs.check("available", "On sale again"))
            (inputs.check("back_in_stock", "Back in stock (each date or market)"))
            (inputs.check("sold_out", "Sold out"))
            (inputs.check("every_run", "A report of each run"))
        }
        (more_rules(inputs.fields, inputs.is_wrong("alerts")))
    }
}

/// What each run looks at: the choice, and the `numbers` that belong to it.
fn watch_fields(fields: &FormFields, numbers: &[Markup]) -> Markup {
    html! {
        h3 { "How much of it each run searches" }
        p class="sub" { "A watch searches where the answer may have changed since earlier runs, and says how likely it has missed something." }
        div class="fields" {
            (select("watch", "Each run", &WATCHES, fields.text("watch")))
            @for number in numbers { (number) }
        }
    }
}

/// What has no field of its own, as JSON.
fn more_fields(fields: &FormFields) -> Markup {
    let value = |name: &str| fields.text(name).unwrap_or_default().to_owned();
    html! {
        details class="fold" open[fields.text("fields").is_some() || fields.text("scan").is_some()] {
            summary { "More fields, as JSON" }
            div class="field wide" {
                label for="fields" { "Other fields of the search" }
                textarea id="fields" name="fields" rows="2" class="mono" placeholder=r#"{"max_stops": 0, "passengers": [1, 1]}"# { (value("fields")) }
            }
            div class="field wide" {
                label for="scan" { "The whole scan, instead of its fields" }
                textarea id="scan" name="scan" rows="4" class="mono" placeholder=r#"{"endpoint": "flights/oneway", "request": {…}, "sweep": {…}}"# { (value("scan")) }
            }
        }
    }
}

/// All rules as JSON, for those without a field.
fn more_rules(fields: &FormFields, is_wrong: bool) -> Markup {
    let value = |name: &str| fields.text(name).unwrap_or_default().to_owned();
    html! {
        details class="fold" open[fields.text("rules").is_some()] {
            summary { "More rules, as JSON" }
            div class="field wide" {
                label for="rules" { "All rules, instead of the fields above" }
                textarea id="rules" name="rules" rows="3" class="mono" placeholder=r#"[{"type": "parity_gap_percent", "percent": 5, "baseline": "us"}]"# aria-invalid=[is_wrong.then_some("true")] { (value("rules")) }
            }
        }
    }
}

/// The class of a field that only some searches have; the style sheet hides it for the others.
fn only_for(name: &str) -> &'static str {
    match name {
        "from_airport" | "to_airport" => " for-flights",
        "hotel_name" => " for-hotels for-by-name",
        "destination" => " for-hotels for-search",
        "hotel_booking_id" => " for-hotels for-rooms",
        "proxy_country" | "samples" => " for-hotels",
        "nights" => " for-nights",
        "below" => " for-below",
        _ => "",
    }
}

fn endpoints() -> Vec<(&'static str, &'static str)> {
    Endpoint::SEARCHES
        .iter()
        .map(|endpoint| {
            let label = match endpoint {
                Endpoint::FlightsOneway => "Flights, one way",
                Endpoint::FlightsRoundtrip => "Flights, round trip",
                Endpoint::HotelsSearch => "Hotels of a place",
                Endpoint::HotelsRooms => "Rooms of a hotel",
                Endpoint::HotelsByName | Endpoint::HotelsResolve => "A hotel by its name",
            };
            (endpoint.as_str(), label)
        })
        .collect()
}

fn select(
    name: &str,
    label: &str,
    options: &[(&'static str, &'static str)],
    chosen: Option<&str>,
) -> Markup {
    html! {
        div class="field" {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                @for (value, text) in options {
                    option value=(value) selected[chosen == Some(*value)] { (text) }
                }
            }
        }
    }
}

/// What was entered, for the steps before and after.
pub(super) fn entered(fields: &FormFields) -> Markup {
    let of_page = ["step", once::FIELD, DAYS];
    html! {
        @for (name, text) in fields.pairs().filter(|(name, _)| !of_page.contains(name)) {
            input type="hidden" name=(name) value=(text);
        }
    }
}

/// The stored form of a checked request, to be sent back by the next step.
///
/// # Errors
/// When the text is not an object.
pub(super) fn read_checked(fields: &FormFields) -> Result<Map<String, Value>, ValidationErrors> {
    match fields.text("request") {
        Some(text) => read_object(text.as_bytes(), MAX_DEPTH),
        None => Err(ValidationError::missing(
            "request",
            "the request that the page before has checked",
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(query: &str) -> Value {
        body(&FormFields::parse(query.as_bytes()))
            .map_or_else(|errors| errors.to_string().into(), Value::Object)
    }

    #[test]
    fn fields_make_the_request_of_the_api() {
        let query = "name=January&endpoint=flights%2Foneway&from_airport=TLV&to_airport=LHR&first=%2B7d&last=%2B36d&nights=3\
                     &fields=%7B%22max_stops%22%3A0%7D&repeat=weekdays&time=07%3A05&timezone=Europe%2FLondon&price_below=199.5&new_low_days=30\
                     &max_requests_per_month=2000&webhook_url=https%3A%2F%2Fexample.com%2F&channel=chn_2&channel=chn_1";
        assert_eq!(
            made(query),
            json!({
                "name": "January",
                "schedule": {"cron": "5 7 * * mon-fri", "timezone": "Europe/London"},
                "scan": {
                    "endpoint": "flights/oneway",
                    "request": {"max_stops": 0, "from_airport": "TLV", "to_airport": "LHR"},
                    "sweep": {"departure_date": {"from": "+7d", "to": "+36d"}}
                },
                "alerts": [{"type": "price_below", "amount": 199.5}, {"type": "new_low", "days": 30}],
                "channels": ["chn_2", "chn_1"],
                "webhook_url": "https://example.com/",
                "max_requests_per_month": 2000
            })
        );
    }

    #[test]
    fn several_markets_and_lengths_are_swept() {
        let scan = made(
            "endpoint=hotels%2Fby-name&hotel_name=Arts&first=2027-01-14&nights=3,+x&proxy_country=us,de&scope=cell&sold_out=yes",
        );
        assert_eq!(
            scan["scan"],
            json!({
                "endpoint": "hotels/by-name",
                "request": {"hotel_name": "Arts"},
                "sweep": {
                    "checkin_date": {"from": "2027-01-14", "to": "2027-01-14"},
                    "nights": [3, "x"],
                    "proxy_country": ["us", "de"]
                }
            })
        );
        assert_eq!(
            scan["alerts"],
            json!([{"type": "sold_out", "scope": "cell"}])
        );
    }

    #[test]
    fn a_scan_as_json_replaces_the_fields() {
        assert_eq!(
            made("scan=%7B%22endpoint%22%3A%22x%22%7D&from_airport=TLV")["scan"],
            json!({"endpoint": "x"})
        );
        assert!(made("scan=%7B").is_string(), "no JSON is an error");
    }
}

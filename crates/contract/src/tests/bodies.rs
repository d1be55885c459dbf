//! Rules of every body (gateway.md, rules 2, 5, 6 and 7), and the accessors of a request.

use super::{body_of, errors, minimal, with};
use crate::scans::ScanRequest;
use crate::{Api, Endpoint, FieldAlias, FieldKind, Request};
use serde_json::{Value, json};

#[test]
fn each_missing_required_field_is_reported() {
    for endpoint in Endpoint::ALL {
        let required: Vec<_> = endpoint
            .fields()
            .iter()
            .filter(|field| field.required)
            .collect();
        assert_eq!(
            required.iter().map(|field| field.name).collect::<Vec<_>>(),
            keys(&minimal(*endpoint)),
            "{endpoint}"
        );
        for field in required {
            let message = format!(
                "`{}` is missing; expected {}",
                field.name,
                (field.expected)()
            );
            assert_eq!(
                errors(*endpoint, &json!({field.name: null})),
                std::slice::from_ref(&message)
            );
            let mut without = minimal(*endpoint);
            without.remove(field.name);
            assert_eq!(
                Request::check(*endpoint, &without).unwrap_err().to_string(),
                message
            );
        }
    }
}

fn keys(body: &serde_json::Map<String, Value>) -> Vec<&str> {
    body.keys().map(String::as_str).collect()
}

#[test]
fn null_is_the_same_as_absent_and_is_never_sent() {
    for endpoint in Endpoint::ALL {
        let mut body = minimal(*endpoint);
        for field in endpoint.fields().iter().filter(|field| !field.required) {
            body.insert(field.name.to_owned(), Value::Null);
        }
        body.insert("no_such_field".to_owned(), Value::Null);
        let checked = Request::check(*endpoint, &body).unwrap();
        assert_eq!(checked.request.to_body(), minimal(*endpoint), "{endpoint}");
        assert_eq!(checked.alias, None);
    }
}

#[test]
fn no_default_is_sent_and_fields_keep_table_order() {
    for endpoint in Endpoint::ALL {
        let mut body: Vec<_> = minimal(*endpoint).into_iter().collect();
        body.reverse();
        let sent = Request::check(*endpoint, &body.into_iter().collect())
            .unwrap()
            .request
            .to_body();
        assert_eq!(keys(&sent), keys(&minimal(*endpoint)), "{endpoint}");
    }
}

#[test]
fn defaults_are_the_documented_ones() {
    let flights = [
        ("sort_type", json!("Overall")),
        ("currency", json!("USD")),
        ("passengers", json!([1])),
        ("limit", json!(10)),
        ("strict", json!(false)),
        ("use_ext_proxy", json!(true)),
    ];
    let stay = [
        ("adults", json!(2)),
        ("children", json!(0)),
        ("currency", json!("USD")),
    ];
    let search: Vec<_> = stay
        .iter()
        .cloned()
        .chain([("filters", json!([]))])
        .collect();
    let rooms: Vec<_> = stay
        .iter()
        .cloned()
        .chain([("free_cancellation", json!(false))])
        .collect();
    for (endpoint, defaults) in [
        (Endpoint::FlightsOneway, &flights[..]),
        (Endpoint::FlightsRoundtrip, &flights[..]),
        (Endpoint::HotelsSearch, &search[..]),
        (Endpoint::HotelsByName, &rooms[..]),
        (Endpoint::HotelsRooms, &rooms[..]),
        (Endpoint::HotelsResolve, &[]),
    ] {
        let documented = endpoint
            .fields()
            .iter()
            .filter_map(|field| Some((field.name, field.default_value()?)));
        assert_eq!(documented.collect::<Vec<_>>(), defaults, "{endpoint}");
    }
}

#[test]
fn the_accessors_give_what_was_sent_or_the_default() {
    let oneway = |more: Value| match Request::check(
        Endpoint::FlightsOneway,
        &with(Endpoint::FlightsOneway, &more),
    ) {
        Ok(checked) => checked.request,
        Err(errors) => panic!("{errors}"),
    };
    let Request::Oneway(silent) = oneway(json!({})) else {
        panic!()
    };
    assert_eq!(
        (
            silent.limit_or_default().get(),
            silent.limit,
            silent.currency_or_default().as_str()
        ),
        (10, None, "USD")
    );
    let Request::Oneway(explicit) =
        oneway(json!({"limit": 3, "currency": "eur", "use_ext_proxy": false}))
    else {
        panic!()
    };
    assert_eq!(
        (
            explicit.limit_or_default().get(),
            explicit.currency_or_default().as_str()
        ),
        (3, "eur")
    );
    assert!(!explicit.use_ext_proxy_or_default() && silent.use_ext_proxy_or_default());
    assert_eq!(silent.passengers_or_default().as_slice().len(), 1);
}

#[test]
fn an_unknown_field_suggests_the_most_similar_name() {
    for (endpoint, name, meant) in [
        (Endpoint::FlightsOneway, "depature_date", "departure_date"),
        (
            Endpoint::FlightsOneway,
            "arrival_time_min",
            "departure_arrival_time_min",
        ),
        (Endpoint::FlightsOneway, "From_Airport", "from_airport"),
        (Endpoint::FlightsOneway, "curency", "currency"),
        (Endpoint::FlightsOneway, "currnecy", "currency"),
        (Endpoint::FlightsOneway, "from", "from_airport"),
        (Endpoint::FlightsOneway, "date", "departure_date"),
        (Endpoint::FlightsOneway, "stops", "max_stops"),
        (Endpoint::FlightsOneway, "lmiit", "limit"),
        (Endpoint::FlightsOneway, "fromAirport", "from_airport"),
        (Endpoint::FlightsOneway, "departure-date", "departure_date"),
        (Endpoint::FlightsOneway, "passenger", "passengers"),
        (Endpoint::HotelsByName, "country", "proxy_country"),
        (Endpoint::FlightsRoundtrip, "max_stop", "max_stops"),
        (
            Endpoint::FlightsRoundtrip,
            "return_airlines",
            "return_airline_codes",
        ),
        (Endpoint::HotelsSearch, "check_in_date", "checkin_date"),
        (Endpoint::HotelsRooms, "booking_id", "hotel_booking_id"),
    ] {
        let message = format!("unknown field `{name}` in {endpoint}; did you mean `{meant}`?");
        assert_eq!(errors(endpoint, &json!({name: 1})), [message]);
    }
}

/// A suggestion of an unlike name would mislead.
#[test]
fn an_unlike_field_name_gets_the_list_of_fields() {
    let fields = "`hotel_name`, `proxy_country`";
    assert_eq!(
        errors(Endpoint::HotelsResolve, &json!({"zzz": 1})),
        [format!(
            "unknown field `zzz` in hotels/resolve; its fields are {fields}"
        )]
    );
    for name in [
        "~",
        "",
        "foo",
        "x",
        "webhook",
        "timezone",
        "hello_world",
        "label",
        "_",
        "__",
        "bags",
        "sweep",
    ] {
        let message = errors(Endpoint::FlightsRoundtrip, &json!({name: 1}));
        assert!(
            message[0]
                .contains("in flights/roundtrip; its fields are `from_airport`, `to_airport`"),
            "{message:?}"
        );
        assert!(message[0].ends_with("and 16 more"), "{message:?}");
    }
}

#[test]
fn all_errors_of_a_body_are_reported_at_once() {
    let body = json!({
        "to_airport": "London", "departure_date": "2027-02-30", "passengers": [1, 9, 2, "x"], "limit": "10", "hotel": 1
    });
    let errors = Request::check(Endpoint::FlightsOneway, body.as_object().unwrap()).unwrap_err();
    let paths: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
    let expected = [
        "from_airport",
        "to_airport",
        "departure_date",
        "passengers[1]",
        "passengers[3]",
        "limit",
        "hotel",
    ];
    assert_eq!(paths, expected);
    let message = errors.to_string();
    assert!(
        message.contains(
            "`to_airport`: found \"London\"; expected an IATA airport code of three letters"
        ),
        "{message}"
    );
    assert!(
        message.contains(". `departure_date`: found \"2027-02-30\"; expected a date that exists"),
        "{message}"
    );
}

/// gateway.md, rule 5: the given fields, the stops sent upstream, and the header.
#[test]
fn max_stops_sets_the_stops_of_each_leg_not_given() {
    for (given, departure, back, header) in [
        (json!({}), None, None, None),
        (json!({"max_stops": null}), None, None, None),
        (
            json!({"max_stops": 1}),
            Some(1),
            Some(1),
            Some("max_stops -> max_departure_stops, max_return_stops"),
        ),
        (
            json!({"max_stops": 1, "max_departure_stops": 0}),
            Some(0),
            Some(1),
            Some("max_stops -> max_return_stops"),
        ),
        (
            json!({"max_stops": 1, "max_return_stops": 2}),
            Some(1),
            Some(2),
            Some("max_stops -> max_departure_stops"),
        ),
        (
            json!({"max_stops": 1, "max_departure_stops": 0, "max_return_stops": 2}),
            Some(0),
            Some(2),
            None,
        ),
        (
            json!({"max_stops": 1, "max_departure_stops": null, "max_return_stops": 0}),
            Some(1),
            Some(0),
            Some("max_stops -> max_departure_stops"),
        ),
    ] {
        let body = with(Endpoint::FlightsRoundtrip, &given);
        let checked = Request::check(Endpoint::FlightsRoundtrip, &body).unwrap();
        let sent = checked.request.to_body();
        assert_eq!(
            sent.get("max_departure_stops").and_then(Value::as_u64),
            departure,
            "{given}"
        );
        assert_eq!(
            sent.get("max_return_stops").and_then(Value::as_u64),
            back,
            "{given}"
        );
        assert!(!sent.contains_key("max_stops"), "{given}");
        assert_eq!(
            checked
                .alias
                .as_ref()
                .map(FieldAlias::header_value)
                .as_deref(),
            header,
            "{given}"
        );
        assert_eq!(
            checked.alias,
            FieldAlias::detect(Endpoint::FlightsRoundtrip, &body)
        );
    }
}

#[test]
fn one_way_max_stops_is_not_an_alias() {
    let body = with(Endpoint::FlightsOneway, &json!({"max_stops": 1}));
    let checked = Request::check(Endpoint::FlightsOneway, &body).unwrap();
    assert_eq!(
        (&checked.request.to_body()["max_stops"], checked.alias),
        (&json!(1), None)
    );
}

#[test]
fn the_alias_of_an_invalid_body_is_known() {
    for bad in [
        json!({"max_stops": "one"}),
        json!({"max_stops": [], "to_airport": 7}),
        json!({"max_stops": -1}),
    ] {
        let body = with(Endpoint::FlightsRoundtrip, &bad);
        let alias = FieldAlias::detect(Endpoint::FlightsRoundtrip, &body).unwrap();
        assert_eq!(
            alias.header_value(),
            "max_stops -> max_departure_stops, max_return_stops"
        );
        let errors = Request::check(Endpoint::FlightsRoundtrip, &body).unwrap_err();
        assert!(
            errors.iter().any(|error| error.path == "max_stops"),
            "{errors}"
        );
    }
}

#[test]
fn a_request_gives_endpoint_limit_strict_and_dates() {
    let (out, back) = (
        Some("2027-01-14".parse().unwrap()),
        Some("2027-01-21".parse().unwrap()),
    );
    let stay = Some("2027-01-17".parse().unwrap());
    for (endpoint, api, limit, first, last) in [
        (Endpoint::FlightsOneway, Api::Flights, Some(10), out, None),
        (
            Endpoint::FlightsRoundtrip,
            Api::Flights,
            Some(10),
            out,
            back,
        ),
        (Endpoint::HotelsSearch, Api::Hotels, None, out, stay),
        (Endpoint::HotelsByName, Api::Hotels, None, out, stay),
        (Endpoint::HotelsRooms, Api::Hotels, None, out, stay),
        (Endpoint::HotelsResolve, Api::Hotels, None, None, None),
    ] {
        let request = Request::check(endpoint, &minimal(endpoint))
            .unwrap()
            .request;
        assert_eq!((request.endpoint(), endpoint.api()), (endpoint, api));
        assert_eq!(
            (request.limit(), request.first_date(), request.last_date()),
            (limit, first, last),
            "{endpoint}"
        );
        assert!(!request.strict(), "{endpoint}");
        assert_eq!(
            Endpoint::SEARCHES.contains(&endpoint),
            endpoint != Endpoint::HotelsResolve
        );
    }
    for endpoint in [Endpoint::FlightsOneway, Endpoint::FlightsRoundtrip] {
        let request = Request::check(
            endpoint,
            &with(endpoint, &json!({"strict": true, "limit": 7})),
        )
        .unwrap()
        .request;
        assert_eq!((request.strict(), request.limit()), (true, Some(7)));
    }
}

/// How a sweep treats a field: dates take ranges, lists take lists of lists.
#[test]
fn each_field_has_its_kind() {
    for endpoint in Endpoint::ALL {
        for field in endpoint.fields() {
            let expected = match field.name {
                name if name.ends_with("_date") => FieldKind::Date,
                name if name.ends_with("_codes") => FieldKind::List,
                "passengers" | "filters" => FieldKind::List,
                _ => FieldKind::Scalar,
            };
            assert_eq!(field.kind, expected, "{endpoint} {}", field.name);
        }
    }
    let kinds: Vec<_> = ScanRequest::FIELDS
        .iter()
        .map(|field| (field.name, field.kind))
        .take(5)
        .collect();
    let (object, list, scalar) = (FieldKind::Object, FieldKind::List, FieldKind::Scalar);
    let expected = [
        ("endpoint", scalar),
        ("request", object),
        ("sweep", object),
        ("label", scalar),
        ("tags", list),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_field_can_be_validated_alone() {
    for endpoint in Endpoint::ALL {
        for field in endpoint.fields() {
            assert_eq!(
                endpoint.field(field.name).map(|found| found.name),
                Some(field.name)
            );
            assert!(
                (field.read)(&json!({})).is_err(),
                "{} takes an object",
                field.name
            );
        }
        assert!(endpoint.field("no_such_field").is_none());
    }
    let airport = Endpoint::FlightsOneway.field("to_airport").unwrap();
    assert_eq!((airport.read)(&json!("lhr")), Ok(json!("LHR")));
    assert_eq!(body_of(Endpoint::FlightsOneway).fields.len(), 19);
    assert_eq!(body_of(Endpoint::FlightsRoundtrip).fields.len(), 28);
}

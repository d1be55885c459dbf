//! Recorded prices.

use super::*;

const CSV: &str = "\
observed_on,origin,destination,departure,price,currency,note
2027-03-01,STN,BGY,2027-04-10,19.99,EUR,first
2027-03-03,STN,BGY,2027-04-10,24.99,EUR,
2027-03-05,STN,BGY,2027-04-10,,EUR,sold out
2027-03-02,DUB,STN,2027-04-10,60,EUR,
2027-03-02,DUB,STN,2027-04-10,61,EUR,the later line counts
";

fn write(
    text: &str,
) -> (
    tempfile::TempDir,
    Result<Scenario, crate::scenarios::ScenarioError>,
) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("prices.csv"), text).unwrap();
    let file = folder.path().join("recorded.toml");
    std::fs::write(&file, "[recorded]\nfile = \"prices.csv\"").unwrap();
    let scenario = Scenario::read(&file);
    (folder, scenario)
}

#[test]
fn the_latest_observation_at_or_before_the_day_is_the_price() {
    let scenario = write(CSV).1.unwrap();
    assert_eq!(scenario.currency(), "EUR");
    let (routes, days) = scenario.recorded().unwrap();
    assert_eq!(routes, [FareRoute::new("DUB", "STN"), route()]);
    assert_eq!(days, date(2027, 3, 1)..=date(2027, 3, 5));
    let prices = PriceProcess::new(Arc::new(scenario), 1);
    let departure = date(2027, 4, 10);
    let seen = series(&prices, departure, date(2027, 2, 28), 8);
    let wanted = [
        None,
        Some(20),
        Some(20),
        Some(25),
        Some(25),
        None,
        None,
        None,
    ];
    assert_eq!(seen, wanted);
    let other = prices.oneway(
        &FareRoute::new("DUB", "STN"),
        departure,
        noon(date(2027, 4, 1)),
    );
    assert_eq!(other.unwrap().shown, 61);
    let departed = prices.oneway(
        &FareRoute::new("DUB", "STN"),
        departure,
        noon(date(2027, 4, 11)),
    );
    assert_eq!(departed, None, "it has departed");
}

#[test]
fn a_scale_keeps_cents() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("prices.csv"), CSV).unwrap();
    let read = |text: &str| Scenario::parse(text, folder.path());
    let cents = read("[recorded]\nfile = \"prices.csv\"\nscale = 100").unwrap();
    assert!(cents.rounding() < 1e-9, "{}", cents.rounding());
    let whole = read("[recorded]\nfile = \"prices.csv\"").unwrap();
    assert!((whole.rounding() - 0.01 / 19.99).abs() < 1e-9);
    let prices = PriceProcess::new(Arc::new(cents), 1);
    let fare = prices.oneway(&route(), date(2027, 4, 10), noon(date(2027, 3, 1)));
    assert_eq!(fare.unwrap().shown, 1_999);
    let error = read("[recorded]\nfile = \"prices.csv\"\nscale = 0")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("recorded.scale: found 0, expected a number from 0.01"),
        "{error}"
    );
}

#[test]
fn a_wrong_line_is_named() {
    let header = "observed_on,origin,destination,departure,price,currency\n";
    let good = "2027-03-01,STN,BGY,2027-04-10,19.99,EUR\n";
    for (text, named) in [
        (
            format!("{header}{good}2027-03-01,STN,BGY,2027-04-10,19.99,GBP"),
            "line 3: currency: found GBP, expected EUR",
        ),
        (
            format!("{header}2027-03-01,STN,BGY,2027-04-10,-1,EUR"),
            "line 2: price: found -1, expected a number from 0",
        ),
        (
            format!("{header}2027-03-01,STN,BGY,2027-04-10,5,XXX"),
            "line 2: currency: found XXX, expected one of USD",
        ),
        (
            format!("{header}{good}2027-13-01,STN,BGY,2027-04-10,5,EUR"),
            "line 3: line: found",
        ),
        (
            "observed_on,origin\n2027-03-01,STN".to_owned(),
            "missing field `destination`",
        ),
        (
            header.to_owned(),
            "found no line, expected at least one line",
        ),
    ] {
        let error = write(&text).1.unwrap_err().to_string();
        assert!(
            error.contains(named) && error.contains("prices.csv"),
            "{error}"
        );
    }
}

#[test]
fn a_missing_file_is_named() {
    let error =
        Scenario::parse("[recorded]\nfile = \"none.csv\"", Path::new("/nowhere")).unwrap_err();
    assert!(
        error.to_string().starts_with("/nowhere/none.csv: "),
        "{error}"
    );
}

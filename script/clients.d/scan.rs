//! A scan through the client of openapi-generator for Rust: order, wait, read every item.

use farescan_client::apis::configuration::{ApiKey, Configuration};
use farescan_client::apis::scans_api::{create_scan, get_scan, list_items};
use farescan_client::models::{DateRange, ScanRequest, SearchFields, Sweep, SweepValue};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().expect("URL KEY FROM TO");
    let (url, key, from, to) = (next(), next(), next(), next());
    let api_key = Some(ApiKey { prefix: None, key });
    let config = Configuration { base_path: url, api_key, ..Configuration::default() };
    let text = |text: &str| Some(Some(text.to_owned()));
    let fields = SearchFields { from_airport: text("TLV"), to_airport: text("LHR"), currency: text("USD"), ..SearchFields::new() };
    let dates = SweepValue::DateRange(Box::new(DateRange::new(from.parse()?, to.parse()?)));
    let sweep = Sweep { departure_date: Some(Box::new(dates)), ..Sweep::new() };
    let endpoint = serde_json::from_value("flights/oneway".into())?;
    let order = ScanRequest { sweep: Some(Box::new(sweep)), ..ScanRequest::new(endpoint, fields) };
    let mut scan = create_scan(&config, order, None).await?;
    for _ in 0..10 {
        if scan.finished_at.is_some() {
            break;
        }
        scan = get_scan(&config, &scan.id, Some(30)).await?;
    }
    let items = count(&config, &scan.id).await?;
    assert_eq!((items, scan.items.total), (3, 3));
    let best = scan.best.ok_or("no price")?;
    println!("{items} items, best {} {}", best.price, best.currency);
    Ok(())
}

async fn count(config: &Configuration, id: &str) -> Result<usize, Box<dyn std::error::Error>> {
    Ok(list_items(config, id, None, None, None, None, None, None, None, None).await?.data.len())
}

//! The watch of a monitor's scan: its question, its price, and the requests of a run (scans.md,
//! rules 91 to 98). Not here: whether they are valid, which the service decides.

use serde_json::{Map, Number, Value, json};

use crate::Failure;
use crate::amount;
use crate::exit::CommandEnd;
use farescan_contract::monitors::Monitor;
use farescan_sheets::draft::share_amount;

/// The word that removes a value.
pub(super) const NONE: &str = "none";

/// What each run of a new monitor looks at.
#[derive(Debug, clap::Args)]
pub(super) struct WatchOptions {
    /// Search only where the answer may have changed since earlier runs: `cheapest` (which is it?)
    /// or `below` (is one below --below?)
    #[arg(long, value_name = "WHAT", value_parser = ["cheapest", "below"], requires = "max_requests")]
    watch: Option<String>,
    /// With --watch below: the price, which is also that of a rule `price_below`
    #[arg(long, value_name = "AMOUNT", value_parser = amount::amount, requires = "watch")]
    below: Option<Number>,
    /// Hard limit of billed requests of a run, retries included; a watch spends no more
    #[arg(long, value_name = "NUMBER")]
    max_requests: Option<u32>,
}

impl WatchOptions {
    /// Sets what was given in the scan. One amount is that of the watch and of its rule
    /// `price_below`, whichever of them names it.
    pub(super) fn set(&self, scan: &mut Map<String, Value>, alerts: &mut Vec<Value>) {
        if let Some(watch) = &self.watch {
            let strategy = strategy(watch, self.below.as_ref());
            scan.insert("strategy".to_owned(), strategy);
            share_amount(scan, alerts);
        }
        if let Some(max) = self.max_requests {
            scan.insert("max_requests".to_owned(), max.into());
        }
    }
}

fn strategy(watch: &str, below: Option<&Number>) -> Value {
    let below = below.map(|below| ("below".to_owned(), json!(below)));
    let watch = ("watch".to_owned(), json!(watch));
    Value::Object([watch].into_iter().chain(below).collect())
}

/// Sets the amount of those rules `price_below` that have the amount of the watch in `stored`, the
/// scan before its change; without any such rule adds one.
pub(super) fn set_amount(rules: &mut Vec<Value>, stored: &Map<String, Value>, below: &Number) {
    let before = stored.get("strategy").and_then(|watch| watch.get("below"));
    let before = before.and_then(Value::as_f64);
    let mut has_rule = false;
    for rule in rules.iter_mut() {
        if rule["type"] != "price_below" {
            continue;
        }
        has_rule = true;
        if before.is_none() || rule["amount"].as_f64() == before {
            rule["amount"] = json!(below);
        }
    }
    if !has_rule {
        rules.push(json!({"type": "price_below", "amount": below}));
    }
}

/// What changes of the watch of a stored monitor.
#[derive(Debug)]
pub(super) struct WatchChange<'a> {
    /// [`NONE`] ends it.
    pub(super) watch: Option<&'a str>,
    pub(super) below: Option<&'a Number>,
    /// Null removes it.
    pub(super) max_requests: Option<&'a Value>,
}

impl WatchChange<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.watch.is_none() && self.below.is_none() && self.max_requests.is_none()
    }

    /// Changes the scan. What is not named stays.
    ///
    /// # Errors
    /// A price without a watch.
    pub(super) fn apply(&self, scan: &mut Map<String, Value>) -> Result<(), Failure> {
        let stored = watch_of(scan).map(str::to_owned);
        let watch = match self.watch {
            Some(NONE) => None,
            given => given.or(stored.as_deref()),
        };
        if let Some(watch) = watch {
            let kept = scan
                .get("strategy")
                .filter(|_| stored.as_deref() == Some(watch));
            let kept = kept.and_then(|kept| kept.get("below")?.as_number().cloned());
            let changed = strategy(watch, self.below.or(kept.as_ref()));
            scan.insert("strategy".to_owned(), changed);
        } else if stored.is_some() {
            scan.shift_remove("strategy");
        }
        if self.below.is_some() && watch.is_none() {
            return Err(CommandEnd::usage(
                "--below needs --watch below; nothing was changed",
            ));
        }
        match self.max_requests {
            Some(Value::Null) => _ = scan.shift_remove("max_requests"),
            Some(max) => _ = scan.insert("max_requests".to_owned(), max.clone()),
            None => {}
        }
        Ok(())
    }
}

fn watch_of(scan: &Map<String, Value>) -> Option<&str> {
    scan.get("strategy")?.get("watch")?.as_str()
}

/// Whether the runs of a monitor watch.
pub(super) fn is_watch(monitor: &Monitor) -> bool {
    let scan = monitor.scan.read::<Map<String, Value>>();
    scan.is_ok_and(|scan| watch_of(&scan).is_some())
}

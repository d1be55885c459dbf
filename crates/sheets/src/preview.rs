//! What a scan would cost, before it is submitted.

use farescan_contract::scans::{PlanCost, PlanFit, ScanPreview};
use serde_json::{Map, Value as Json};

use crate::numbers::{amount, count, counted, duration, range, rate, request_range};
use crate::sheet::{Column, Figure, Notice, Sheet, Table, Tone, Value};
use crate::trip::{body_facts, body_title, search_title};

/// The preview of a scan with this body as a sheet.
pub fn sheet(preview: &ScanPreview, body: &Map<String, Json>) -> Sheet {
    let items = counted(preview.items, "search");
    let first = format!("from {}", search_title(preview.endpoint, &preview.first));
    let requests = range(preview.requests.least, preview.requests.most);
    let seconds = format!("about {}", duration(preview.seconds));
    let pace = format!("{} searches a minute", rate(preview.searches_per_minute));
    let warnings = preview.warnings.iter();
    let warnings = warnings.map(|warning| Notice::warning("Note:", &warning.message));
    Sheet {
        title: body_title(body).unwrap_or_default(),
        facts: body_facts(body).into_iter().map(Value::Text).collect(),
        figures: vec![
            Figure::new("Searches", count(preview.items)).note(first),
            Figure::new("Requests of your plan", requests).note(requests_note(preview)),
            Figure::new("Duration", seconds).note(pace),
            left(preview),
        ],
        notices: warnings.collect(),
        action: Some(format!(
            "Submit {items} for {}",
            request_range(preview.requests)
        )),
        ..Sheet::default()
    }
}

/// What the range of requests means, and what is not in it.
fn requests_note(preview: &ScanPreview) -> String {
    let expected = preview.requests.expected;
    let expected = expected.map(|expected| format!("{} if prices are as stored", count(expected)));
    let most = Some("the higher number only if the marketplace has errors".to_owned());
    let reused = preview.reused.filter(|reused| *reused > 0);
    let reused = reused.map(|reused| format!("{} reused", counted(reused, "answer")));
    let parts = [expected, most, reused].into_iter().flatten();
    parts.collect::<Vec<_>>().join(", ")
}

/// What is left of the plan now, and after the scan.
fn left(preview: &ScanPreview) -> Figure {
    const LABEL: &str = "Left of your plan";
    let Some(left) = preview.plan_requests_remaining else {
        let unknown = "the marketplace reports it with the first search";
        return Figure::new(LABEL, Value::Absent("unknown")).note(unknown);
    };
    let after = |spent: u64| left.saturating_sub(spent);
    let after = range(after(preview.requests.most), after(preview.requests.least));
    Figure::new(LABEL, count(left)).note(format!("{after} after this scan"))
}

/// The cost on plans, as rows.
pub fn plans(name: &'static str, plans: &[&PlanCost]) -> Table {
    let columns = [
        Column::text("Plan"),
        Column::text("Fits"),
        Column::number("USD a month"),
        Column::number("Requests left"),
        Column::number("Over quota"),
        Column::number("USD for them"),
    ];
    let rows = plans.iter().map(|plan| {
        let (tone, fit) = plan_fit(plan);
        let yours = plan
            .current
            .then(|| Value::Word(Tone::Info, "yours".to_owned()));
        let name = Value::Text(plan.plan.to_string());
        let beyond = range(plan.overage_requests.least, plan.overage_requests.most);
        let cells = [
            std::iter::once(name).chain(yours).collect(),
            vec![Value::Word(tone, fit.to_owned())],
            vec![plan.usd_per_month.to_string().into()],
            vec![Value::Count(plan.requests_left)],
            vec![beyond.into()],
            vec![overage_usd(plan).map_or(Value::Absent("stops"), Value::Text)],
        ];
        (None, cells)
    });
    Table::new(name, columns, rows)
}

/// Whether a plan suffices.
pub const fn plan_fit(cost: &PlanCost) -> (Tone, &'static str) {
    match cost.fit {
        PlanFit::Included => (Tone::Good, "included"),
        PlanFit::Overage => (Tone::Warn, "partly beyond the quota"),
        PlanFit::MayStop => (Tone::Warn, "may stop before the end"),
        PlanFit::NotPossible => (Tone::Bad, "stops before the end"),
    }
}

/// The price of the requests beyond a plan's quota in US dollars; `None`: it stops there.
pub fn overage_usd(cost: &PlanCost) -> Option<String> {
    let usd = cost.overage_usd?;
    let (least, most) = (amount(usd.least), amount(usd.most));
    Some(if least == most {
        least
    } else {
        format!("{least} to {most}")
    })
}

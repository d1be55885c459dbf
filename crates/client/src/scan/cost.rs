//! What a scan would cost, in words.

use std::fmt::Write as _;

use crate::format::duration;
use farescan_contract::scans::{PlanCost, PlanFit, RequestRange, ScanPreview, WarningKind};
use farescan_sheets::numbers::{self, amount, count, counted, range};

/// Why a scan is not submitted.
#[derive(Debug, PartialEq, Eq)]
pub enum CostRefusal {
    /// The service would refuse it.
    Limit(String),
    /// The plan has fewer requests left than it needs.
    OverQuota(String),
}

/// The lines before the question.
pub fn describe(preview: &ScanPreview) -> String {
    let mut text = format!(
        "{}: {}, about {} at {} searches a minute\n",
        counted(preview.items, "search"),
        requests_and_reuse(preview),
        duration(preview.seconds),
        whole(preview.searches_per_minute)
    );
    match preview.plan_requests_remaining {
        Some(left) => {
            let after = |spent: u64| left.saturating_sub(spent);
            let RequestRange { least, most, .. } = preview.requests;
            _ = writeln!(
                text,
                "{} left of the plan; {} afterwards",
                counted(left, "request"),
                range(after(most), after(least))
            );
        }
        None => text.push_str("What is left of the plan is not known yet: the marketplace reports it with the first search\n"),
    }
    text.push_str(&plans(&preview.plans));
    for warning in &preview.warnings {
        _ = writeln!(text, "Note: {}", warning.message);
    }
    text
}

/// A pace as a whole number with separators.
fn whole(pace: f64) -> String {
    let digits = format!("{pace:.0}");
    digits.parse::<u64>().map_or(digits, count)
}

/// `16 requests`, `16 to 32 requests`.
pub fn requests(preview: &ScanPreview) -> String {
    numbers::request_range(preview.requests)
}

/// `5 to 10 requests, 11 answers reused`.
fn requests_and_reuse(preview: &ScanPreview) -> String {
    let mut text = requests(preview);
    if let Some(expected) = preview.requests.expected {
        _ = write!(text, ", {} if prices are as stored", count(expected));
    }
    if let Some(reused) = preview.reused.filter(|reused| *reused > 0) {
        _ = write!(text, ", {} reused", counted(reused, "answer"));
    }
    text
}

/// One line about each of the marketplace's plans.
pub fn plans(plans: &[PlanCost]) -> String {
    if plans.is_empty() {
        return String::new();
    }
    let each: Vec<_> = plans.iter().map(plan).collect();
    format!("By plan: {}\n", each.join(" · "))
}

fn plan(cost: &PlanCost) -> String {
    let yours = if cost.current { " (yours)" } else { "" };
    let fit = match (cost.fit, &cost.overage_usd) {
        (PlanFit::Included, _) => "included".to_owned(),
        (PlanFit::Overage, Some(usd)) if usd.least == usd.most => {
            format!("{} USD beyond the quota", amount(usd.most))
        }
        (PlanFit::Overage, Some(usd)) => {
            format!(
                "{} to {} USD beyond the quota",
                amount(usd.least),
                amount(usd.most)
            )
        }
        (PlanFit::Overage, None) => "beyond the quota".to_owned(),
        (PlanFit::MayStop, _) => "may stop at its quota".to_owned(),
        (PlanFit::NotPossible, _) => "stops at its quota".to_owned(),
    };
    format!("{}{yours} {fit}", cost.plan)
}

/// Why the scan should not be submitted, if so.
pub fn refusal(preview: &ScanPreview) -> Option<CostRefusal> {
    let message = |kind: WarningKind| {
        let warning = preview
            .warnings
            .iter()
            .find(|warning| warning.kind == kind)?;
        Some(warning.message.clone())
    };
    if let Some(message) = message(WarningKind::TooMuchUnderway) {
        return Some(CostRefusal::Limit(message));
    }
    let left = preview.plan_requests_remaining?;
    (preview.requests.least > left).then(|| {
        CostRefusal::OverQuota(format!(
            "the scan needs {} and the plan has {} left",
            numbers::request_range(preview.requests),
            count(left)
        ))
    })
}

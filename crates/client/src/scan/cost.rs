//! What a scan would cost, in words.

use crate::render::sheet::lines;
use farescan_contract::scans::{PlanCost, PlanFit, ScanPreview, WarningKind};
use farescan_sheets::numbers::{self, count};
use farescan_sheets::preview::{overage_usd, plan_fit};
use farescan_sheets::sheet::Sheet;

/// Why a scan is not submitted.
#[derive(Debug, PartialEq, Eq)]
pub enum CostRefusal {
    /// The service would refuse it.
    Limit(String),
    /// The plan has fewer requests left than it needs.
    OverQuota(String),
}

/// The lines before the question.
pub fn describe(preview: &ScanPreview, sheet: &Sheet) -> String {
    let notes = sheet.notices.iter();
    let notes = notes.map(|notice| format!("{}\n", crate::render::sheet::said(notice)));
    let plans = plans(&preview.plans);
    format!("{}\n{plans}{}", lines(sheet), notes.collect::<String>())
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
    let usd = overage_usd(cost).filter(|_| cost.fit == PlanFit::Overage);
    let usd = usd.map_or_else(String::new, |usd| format!(" for {usd} USD"));
    format!("{}{yours} {}{usd}", cost.plan, plan_fit(cost).1)
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

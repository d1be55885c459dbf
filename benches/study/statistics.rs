//! Means, percentiles and declared risks.

use serde::Serialize;

/// Upper ends of the bins of declared risk.
const BINS: [f64; 5] = [0.02, 0.05, 0.10, 0.25, 1.0];

/// Declared risks of one bin, and how often they were right.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct RiskBin {
    /// The highest declared risk of the bin.
    pub up_to: f64,
    pub answers: usize,
    /// The mean declared risk.
    pub declared: f64,
    /// The share of the answers for which there was a date that is cheaper by more than 1 %.
    pub real: f64,
}

impl RiskBin {
    /// The bins of several strategies as those of one.
    pub fn together<'a>(all: impl Iterator<Item = &'a [Self]>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for bins in all {
            sums.resize(bins.len().max(sums.len()), Self::default());
            for (sum, bin) in sums.iter_mut().zip(bins) {
                let answers = sum.answers + bin.answers;
                let share = ratio(bin.answers, answers);
                sum.up_to = bin.up_to;
                sum.declared += (bin.declared - sum.declared) * share;
                sum.real += (bin.real - sum.real) * share;
                sum.answers = answers;
            }
        }
        sums
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a study")]
pub fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts of a study")]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The value that so many percent of the values do not exceed.
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// The bins of declared risks, each with whether a date was cheaper; empty if none was declared.
pub fn risk_bins(declared: &[(f64, bool)]) -> Vec<RiskBin> {
    if declared.is_empty() {
        return Vec::new();
    }
    let mut from = f64::NEG_INFINITY;
    BINS.iter()
        .map(|up_to| {
            let of_bin: Vec<_> = declared
                .iter()
                .filter(|(risk, _)| *risk > from && risk <= up_to)
                .collect();
            from = *up_to;
            let risks: Vec<_> = of_bin.iter().map(|(risk, _)| *risk).collect();
            let cheaper = of_bin.iter().filter(|(_, cheaper)| *cheaper).count();
            RiskBin {
                up_to: *up_to,
                answers: of_bin.len(),
                declared: mean(&risks),
                real: ratio(cheaper, of_bin.len()),
            }
        })
        .collect()
}

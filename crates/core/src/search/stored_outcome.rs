//! An outcome in its stored form: without the body, which has a column of its own, and without the
//! caller's key, which the marketplace may have echoed (security.md, rule 3).

use std::time::Duration;

use super::{Answer, AnswerBody, CallerKey, Finding, Outcome, PlanQuota, RateLimit, StoredHeaders};
use crate::contract::SearchStatus;

impl Outcome {
    /// The stored form.
    #[must_use]
    pub fn to_stored(&self, key: &CallerKey) -> Self {
        let clean = |text: &str| text.replace(key.expose(), "[key]");
        let clean_headers = |headers: &[(String, String)]| -> Vec<_> {
            headers
                .iter()
                .map(|(name, value)| (name.clone(), clean(value)))
                .collect()
        };
        let finding = match &self.finding {
            Finding::Answer(Answer {
                results,
                stated,
                reason,
                ..
            }) => Finding::Answer(Answer {
                body: AnswerBody::from_checked("null"),
                results: *results,
                stated: *stated,
                reason: reason.as_deref().map(clean),
            }),
            Finding::RateLimited(RateLimit {
                body,
                content_type,
                retry_after,
            }) => Finding::RateLimited(RateLimit {
                body: clean(&String::from_utf8_lossy(body)).into(),
                content_type: content_type.clone(),
                retry_after: retry_after.clone(),
            }),
            // `upstream` removed the key from their messages.
            other => other.clone(),
        };
        Self {
            finding,
            http_status: self.http_status,
            search_headers: clean_headers(&self.search_headers),
            plan_headers: clean_headers(&self.plan_headers),
            plan: self.plan,
            billed_requests: self.billed_requests,
            latency: self.latency,
        }
    }

    /// The outcome of a call whose parts are stored in columns: an answer, which has cost nothing
    /// now.
    pub fn of_answer(
        body: AnswerBody,
        results: usize,
        http_status: Option<u16>,
        search_headers: StoredHeaders,
        latency: Duration,
    ) -> Self {
        let search_headers = search_headers.to_pairs();
        let header = |wanted: &str| {
            let mut headers = search_headers.iter();
            headers.find_map(|(name, value)| (name == wanted).then_some(value.as_str()))
        };
        Self {
            finding: Finding::Answer(Answer {
                body,
                results,
                stated: header("x-search-status").and_then(SearchStatus::parse),
                reason: header("x-search-reason").map(str::to_owned),
            }),
            http_status,
            search_headers,
            plan_headers: Vec::new(),
            plan: PlanQuota::default(),
            billed_requests: 0,
            latency,
        }
    }

    /// Restores the body; `None` if it is missing.
    pub fn with_body(mut self, stored: Option<AnswerBody>) -> Option<Self> {
        if let Finding::Answer(answer) = &mut self.finding {
            answer.body = stored?;
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::search::Incomplete;

    fn outcome(finding: Finding) -> Outcome {
        Outcome {
            finding,
            http_status: Some(200),
            search_headers: vec![("x-search-note".into(), "for canary-1".into())],
            plan_headers: vec![("x-plan-limit".into(), "150".into())],
            plan: PlanQuota {
                limit: Some(1),
                ..PlanQuota::default()
            },
            billed_requests: 2,
            latency: Duration::from_millis(1234),
        }
    }

    /// Writes and reads an outcome as the database does.
    fn read_back(finding: Finding, stored: Option<AnswerBody>) -> Option<Outcome> {
        let json = serde_json::to_string(&outcome(finding).to_stored(&CallerKey::new("canary-1")))
            .unwrap();
        assert!(!json.contains("canary"), "{json}");
        serde_json::from_str::<Outcome>(&json)
            .unwrap()
            .with_body(stored)
    }

    #[test]
    fn a_stored_answer_is_restored_with_its_body() {
        let body = AnswerBody::from(json!([{"price": 1.5}]));
        let answer = || {
            Finding::Answer(Answer {
                body: body.clone(),
                results: 1,
                stated: None,
                reason: None,
            })
        };
        let back = read_back(answer(), Some(body.clone())).unwrap();
        assert!(
            matches!(&back.finding, Finding::Answer(answer) if answer.body == body && answer.results == 1)
        );
        assert_eq!(
            (
                back.billed_requests,
                back.latency.as_millis(),
                back.plan.limit
            ),
            (2, 1234, Some(1))
        );
        assert_eq!(back.search_headers[0].1, "for [key]");
        assert!(read_back(answer(), None).is_none());
    }

    #[test]
    fn other_findings_are_restored_unchanged() {
        let limit = RateLimit {
            body: "slow down, canary-1".into(),
            content_type: None,
            retry_after: Some("7".into()),
        };
        let back = read_back(Finding::RateLimited(limit), None).unwrap();
        assert!(
            matches!(&back.finding, Finding::RateLimited(limit) if limit.body == "slow down, [key]" && limit.retry_after_seconds() == Some(7))
        );
        for incomplete in [
            Incomplete::Timeout,
            Incomplete::Status(418),
            Incomplete::Stated {
                reason: "blocked_page".into(),
            },
        ] {
            let back = read_back(Finding::Incomplete(incomplete.clone()), None).unwrap();
            assert!(matches!(&back.finding, Finding::Incomplete(same) if *same == incomplete));
        }
    }
}

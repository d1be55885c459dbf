//! The accessibility check of a page, by axe-core (`third_party/axe-core`).

use serde_json::{Value, json};

use super::chromium::Chromium;

const AXE: &str = include_str!("third_party/axe-core/axe.min.js");

/// Every rule that is not experimental: WCAG 2.x A and AA, and axe's best practices. What fades in has
/// its own colours only once its animation has ended.
const RUN: &str = "
    const [options, done] = arguments;
    const ending = document.getAnimations()
        .filter((animation) => Number.isFinite(animation.effect.getComputedTiming().endTime));
    Promise.allSettled(ending.map((animation) => animation.finished))
        .then(() => axe.run(document, {resultTypes: ['violations'], ...options})).then(
        (found) => done(found.violations.map((rule) => ({
            rule: rule.id, help: rule.help,
            elements: rule.nodes.map((node) => node.html.slice(0, 200) + ' ' + (node.failureSummary ?? '')),
        }))),
        (error) => done([{rule: 'axe failed', help: String(error)}]),
    );";

impl Chromium {
    /// Makes axe known to the page that is open.
    pub async fn load_axe(&self) {
        let loaded = self
            .devtools("Runtime.evaluate", json!({"expression": AXE}))
            .await;
        assert!(loaded["exceptionDetails"].is_null(), "{loaded}");
    }

    /// What axe finds on the page, in its present width and theme.
    pub async fn violations(&self) -> Vec<Value> {
        self.run_axe(json!({})).await
    }

    /// The same of the rules about colours: nothing else depends on the theme.
    pub async fn violations_of_colors(&self) -> Vec<Value> {
        self.run_axe(json!({"runOnly": ["color-contrast", "link-in-text-block"]}))
            .await
    }

    async fn run_axe(&self, options: Value) -> Vec<Value> {
        let found = self.driver.execute_async(RUN, vec![options]).await.unwrap();
        found.json().as_array().unwrap().clone()
    }

    /// By how many pixels the page is wider than its viewport.
    pub async fn overflow(&self) -> i64 {
        let wider = "return document.documentElement.scrollWidth - window.innerWidth";
        self.script(wider).await.as_i64().unwrap().max(0)
    }
}

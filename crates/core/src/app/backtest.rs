//! Backtests of monitors, for the API and the dashboard.

use serde_json::{Map, Value};

use super::AppState;
use super::error::ApiResult;
use crate::commands::RequestContext;
use crate::contract::monitors::{Backtest, BacktestQuery};
use crate::monitors;

impl AppState {
    /// Replays a monitor, for the API and the dashboard.
    ///
    /// # Errors
    /// Those of [`monitors::backtest`]; 429 or 503 while other backtests hold the permits.
    pub async fn backtest(
        &self,
        context: RequestContext<'_>,
        body: &Map<String, Value>,
        query: &BacktestQuery,
    ) -> ApiResult<Backtest> {
        self.record_acceptance(context.key).await;
        // First, because anybody can invent a key.
        let tenant = monitors::backtest::accepted_tenant(context).await?;
        let _permits = self.concurrency.backtest(context.key).await?;
        let (history, days) = (self.history_pool()?, query.days_or_default());
        let guard = self.webhook_guard();
        let caller = (context, tenant);
        Ok(monitors::backtest::backtest(caller, history, guard, body, days).await?)
    }
}

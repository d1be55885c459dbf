//! `/v1/scans/{id}/decisions`: what a scan's strategy has decided, and why.

use super::openapi::ReadErrors;
use farescan_core::app::api_request::ApiRequest;
use farescan_core::app::error::ApiResult;
use farescan_core::contract::scans::{DecisionPage, DecisionsQuery};
use farescan_core::ids::{Kind, ScanId};
use farescan_core::scans::read;

/// List the decisions of a scan
///
/// What its strategy searched and why, oldest first; none without a strategy. Each was stored before
/// the first of its searches began.
#[utoipa::path(
    get, path = "/v1/scans/{id}/decisions", operation_id = "list_decisions", tag = "Scans",
    params(("id" = ScanId, Path, description = "The scan"), DecisionsQuery),
    responses((status = 200, description = "A page, `Link` names the next one", body = DecisionPage), ReadErrors)
)]
pub(super) async fn list(request: ApiRequest) -> ApiResult {
    let context = request.context()?;
    let query = DecisionsQuery::from_query(request.pairs.iter())?;
    let (tenant, id) = request.owned::<ScanId>().await?;
    let page = read::decisions(context.pool, tenant, id, &query)
        .await?
        .ok_or(Kind::Scan)?;
    Ok(request.page(&page, page.next_cursor.as_deref()))
}

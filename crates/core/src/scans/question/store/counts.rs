//! Statements on what was counted of a caller's questions, and on the scans that are still to be
//! played again.

use jiff::Timestamp;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{lines, number};
use crate::contract::Api;
use crate::ids::{ScanId, TenantId};
use crate::planner::{Known, MissCount, Misses, Replayed, Setting, SettingChoice};
use crate::scans::plan::DateLines;
use crate::scans::question::DueScan;

/// What was counted of such questions of a caller, over what was counted elsewhere.
pub(in crate::scans) async fn misses(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
) -> sqlx::Result<Misses> {
    let rows = sqlx::query!(
        "select known, percent_a_day, is_patient, questions, missed from question_counts where tenant_id = $1 and api = $2",
        tenant.uuid(),
        api.as_str(),
    );
    let rows = rows.fetch_all(conn).await?;
    let own = rows.into_iter().filter_map(|row| {
        let counted = Some((row.questions, row.missed));
        let choice = choice((row.percent_a_day, row.is_patient), counted);
        Some(((Known::parse(&row.known)?, choice.setting), choice.counted?))
    });
    Ok(Misses {
        own: own.collect(),
        has_prior: api == Api::Flights,
    })
}

/// A setting and what was counted of it, as they are stored.
pub(super) fn choice(
    (percent_a_day, is_patient): (i16, bool),
    counted: Option<(i32, i32)>,
) -> SettingChoice {
    let whole = |number: i32| u32::try_from(number).unwrap_or_default();
    let counted = counted.map(|(questions, missed)| MissCount {
        questions: whole(questions),
        missed: whole(missed),
    });
    let percent_a_day = u8::try_from(percent_a_day).unwrap_or(u8::MAX);
    let setting = Setting {
        percent_a_day,
        is_patient,
    };
    SettingChoice { setting, counted }
}

/// Notes that a scan is to be played again once it has ended.
pub(in crate::scans::question) async fn insert_due(
    conn: &mut PgConnection,
    tenant: TenantId,
    scan: ScanId,
    lines: DateLines,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into due_replays (tenant_id, scan_id, dates, date_step) values ($1, $2, $3, $4)",
        tenant.uuid(),
        scan.uuid(),
        number(lines.dates),
        number(lines.step),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Scans that have ended and are to be played again, after the given one.
pub(in crate::scans::question) async fn find_due_replays(
    pool: &PgPool,
    (after_tenant, after_scan): (Uuid, Uuid),
    limit: i64,
) -> sqlx::Result<Vec<DueScan>> {
    sqlx::query_as!(
        DueScan,
        "select d.tenant_id as tenant, d.scan_id as scan
         from due_replays d join scans s on s.tenant_id = d.tenant_id and s.scan_id = d.scan_id
         where s.finished_at is not null and (d.tenant_id, d.scan_id) > ($2, $3)
         order by d.tenant_id, d.scan_id limit $1",
        limit,
        after_tenant,
        after_scan,
    )
    .fetch_all(pool)
    .await
}

/// An ended scan that is played again.
pub(in crate::scans::question) struct DueReplay {
    pub(in crate::scans::question) api: Api,
    pub(in crate::scans::question) lines: DateLines,
    pub(in crate::scans::question) created_at: Timestamp,
    pub(in crate::scans::question) is_completed: bool,
}

/// Takes a scan from those that are due, in the transaction that counts it; `None`: another has.
pub(in crate::scans::question) async fn take_due(
    conn: &mut PgConnection,
    due: &DueScan,
) -> sqlx::Result<Option<DueReplay>> {
    let row = sqlx::query!(
        r#"delete from due_replays d using scans s
           where d.tenant_id = $1 and d.scan_id = $2 and s.tenant_id = $1 and s.scan_id = $2 and s.finished_at is not null
           returning s.api as "api: Api", d.dates, d.date_step, s.created_at as "created_at: jiff_sqlx::Timestamp",
                     s.status = 'completed' as "is_completed!""#,
        due.tenant.uuid(),
        due.scan.uuid(),
    );
    let row = row.fetch_optional(conn).await?;
    Ok(row.map(|row| DueReplay {
        api: row.api,
        lines: lines(row.dates, row.date_step),
        created_at: row.created_at.to_jiff(),
        is_completed: row.is_completed,
    }))
}

/// Adds what a replay has counted.
pub(in crate::scans::question) async fn add_counts(
    conn: &mut PgConnection,
    tenant: TenantId,
    api: Api,
    replayed: &Replayed,
) -> sqlx::Result<()> {
    let settings = replayed.missed.iter().map(|(setting, _)| setting);
    let percents = settings.clone().map(|one| i32::from(one.percent_a_day));
    let patient = settings.map(|one| one.is_patient);
    let missed = replayed.missed.iter().map(|(_, missed)| *missed);
    sqlx::query!(
        "insert into question_counts as c (tenant_id, api, known, percent_a_day, is_patient, questions, missed)
         select $1, $2, $3, x.percent_a_day, x.is_patient, 1, x.missed::integer
         from unnest($4::integer[], $5::boolean[], $6::boolean[]) as x (percent_a_day, is_patient, missed)
         on conflict (tenant_id, api, known, percent_a_day, is_patient)
         do update set questions = c.questions + 1, missed = c.missed + excluded.missed",
        tenant.uuid(),
        api.as_str(),
        replayed.known.as_str(),
        &percents.collect::<Vec<_>>(),
        &patient.collect::<Vec<_>>(),
        &missed.collect::<Vec<_>>(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

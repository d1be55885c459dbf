//! Statements that use a tenant's table without a tenant condition, each with its reason; any other statement without one fails.
//!
//! A table counts as bound when its `tenant_id` is equal to a parameter or a variable, or to that of a table which is bound.

use std::collections::BTreeSet;

use super::statements::{Kind, Statement, definitions, queries};
use super::tenant_conditions::{conditions, tokens, unread};
use crate::support::db::TestDb;

/// A statement, the table that is not bound in it, and why.
const UNBOUND: &[(&str, &str, &str)] = &[
    (
        "select t.tenant_id from tenants t where t.accepted_at is null and greatest",
        "lanes",
        "upkeep: removes callers that were never accepted, or one of them",
    ),
    (
        "select t.tenant_id from tenants t where t.accepted_at is null and greatest",
        "scan_items",
        "upkeep: removes callers that were never accepted, or one of them",
    ),
    (
        "select t.tenant_id from tenants t where t.accepted_at is null and greatest",
        "scans",
        "upkeep: removes callers that were never accepted, or one of them",
    ),
    (
        "select t.tenant_id from tenants t where t.accepted_at is null and greatest",
        "tenants",
        "upkeep: removes callers that were never accepted, or one of them",
    ),
    (
        "select u.tenant_id, u.scan_id, u.strategy, s.endpoint",
        "scan_items",
        "stores the rest of scans whose callers were accepted, or of some callers",
    ),
    (
        "select u.tenant_id, u.scan_id, u.strategy, s.endpoint",
        "scans",
        "stores the rest of scans whose callers were accepted, or of some callers",
    ),
    (
        "select u.tenant_id, u.scan_id, u.strategy, s.endpoint",
        "tenants",
        "stores the rest of scans whose callers were accepted, or of some callers",
    ),
    (
        "select u.tenant_id, u.scan_id, u.strategy, s.endpoint",
        "unexpanded_scans",
        "stores the rest of scans whose callers were accepted, or of some callers",
    ),
    (
        "select s.tenant_id, k.key_id, k.fingerprint from account_settings",
        "account_settings",
        "whose synchronous searches are stored, for the memory of a process",
    ),
    (
        "select s.tenant_id, k.key_id, k.fingerprint from account_settings",
        "tenant_keys",
        "whose synchronous searches are stored, for the memory of a process",
    ),
    (
        "update installation set marketplace = $1",
        "tenants",
        "whether there is any caller at all, before a sandbox takes a database",
    ),
    (
        "function claim_items",
        "lanes",
        "claims from any due lane; every later step is bound to that lane",
    ),
    (
        "function leaked_claims",
        "scan_items",
        "claims of one process, of all callers; they are abandoned lane by lane",
    ),
    (
        "function claim_items",
        "scan_items",
        "updates rows by their ctid, which the lane's own query found",
    ),
    (
        "select key_id, tenant_id from tenant_keys where (key_id, fingerprint) in",
        "tenant_keys",
        "finds the tenant",
    ),
    (
        "select distinct key_id from key_grants where wiped_at is null",
        "key_grants",
        "which master keys are in use, at start",
    ),
    (
        "delete from workers",
        "scan_items",
        "keeps a dead process that still has claims, of any caller",
    ),
    (
        "select tenant_id, grant_id from key_grants where wiped_at is null",
        "key_grants",
        "upkeep finds what has expired; each is wiped by itself",
    ),
    (
        "select s.tenant_id, s.scan_id from scans s join key_grants g",
        "key_grants",
        "upkeep: bound to the scan's tenant",
    ),
    (
        "select s.tenant_id, s.scan_id from scans s join key_grants g",
        "scans",
        "upkeep finds scans whose key has expired; each is paused by itself",
    ),
    (
        "select t.tenant_id as tenant, t.scan_id as scan from scan_strategies t",
        "scan_strategies",
        "the sweep finds decisions that are due; each is made by itself",
    ),
    (
        "select t.tenant_id as tenant, t.scan_id as scan from scan_strategies t",
        "scans",
        "the sweep: bound to the strategy's tenant",
    ),
    (
        "select t.tenant_id as tenant, t.scan_id as scan from scan_strategies t",
        "unexpanded_scans",
        "the sweep: bound to the strategy's tenant",
    ),
    (
        "select d.tenant_id as tenant, d.scan_id as scan from due_replays d",
        "due_replays",
        "the sweep finds scans to play again; each is played by itself",
    ),
    (
        "select d.tenant_id as tenant, d.scan_id as scan from due_replays d",
        "scans",
        "the sweep: bound to the tenant of the replay",
    ),
    (
        "delete from idempotency_keys where ctid = any",
        "idempotency_keys",
        "upkeep: deletes old rows of all callers",
    ),
    (
        "delete from passed_keys where ctid = any",
        "passed_keys",
        "upkeep: deletes old rows of all callers",
    ),
    (
        "select from (select tenant_id, scan_id from scans",
        "scans",
        "upkeep: scans that should have ended; each is ended by itself",
    ),
    (
        "select tenant_id, scan_id from scans where finished_at <",
        "scans",
        "upkeep: scans that ended long ago, of all callers; each is deleted by itself",
    ),
    (
        "delete from alerts where ctid = any",
        "alerts",
        "upkeep: deletes old rows of all callers",
    ),
    (
        "delete from monitor_slots where ctid = any",
        "monitor_slots",
        "upkeep: deletes old rows of all callers",
    ),
    (
        "function delete_old_events",
        "scans",
        "upkeep: deletes old events of all callers",
    ),
    (
        "function delete_old_events",
        "scan_events",
        "upkeep: bound to their own scan",
    ),
    (
        "select tenant_id, passed_at, held_keys, lanes_resumed from passed_keys",
        "passed_keys",
        "finds the tenant of a rotated key",
    ),
    (
        "select key_id, fingerprint, tenant_id, passed_at from passed_keys",
        "passed_keys",
        "finds the tenants of rotated keys",
    ),
    (
        "delete from passed_keys where passed_at",
        "passed_keys",
        "upkeep, and a key that is in use again",
    ),
    (
        "select key_id, count(distinct tenant_id)",
        "tenant_keys",
        "an operator's question: how many callers a master key still has",
    ),
    (
        "select tenant_id, grant_id, purpose, key_id, nonce, ciphertext, expires_at from key_grants",
        "key_grants",
        "moving all keys to a new master key",
    ),
    (
        "function notify_scans_of_api",
        "scans",
        "notifies listeners of all live scans of an API whose circuit changed",
    ),
    (
        "function close_circuit",
        "lanes",
        "wakes all lanes that wait for the circuit",
    ),
    (
        "select k.key_id, k.fingerprint, k.tenant_id from (select distinct",
        "tenant_keys",
        "finds the tenants of many callers at once",
    ),
    (
        "function renew_fingerprint",
        "tenant_keys",
        "finds the tenant",
    ),
    (
        "function lease_messages",
        "webhook_endpoints",
        "leases any due endpoint; every later step is bound to that endpoint",
    ),
    (
        "select extract(epoch from min(next_at) - clock_timestamp())",
        "webhook_endpoints",
        "when any endpoint is due next",
    ),
    (
        "delete from deliveries where ctid = any",
        "deliveries",
        "upkeep: deletes old rows of all callers",
    ),
    (
        "select tenant_id, monitor_id from monitors where next_slot is not null",
        "monitors",
        "the tick finds what is due; each is decided by itself",
    ),
    (
        "select min(greatest(next_slot, not_before)) as",
        "monitors",
        "when the tick has to look again",
    ),
    (
        "select tenant_id, monitor_id from monitors where notify_at <= $1",
        "monitors",
        "the tick finds held alerts that are due; each monitor's are sent by themselves",
    ),
    (
        "select min(notify_at) as",
        "monitors",
        "when the tick has to look again",
    ),
    (
        "select s.tenant_id, s.monitor_id, s.slot, s.kind, s.scan_id",
        "monitor_slots",
        "the tick finds runs that have ended; each is judged by itself",
    ),
    (
        "select s.tenant_id, s.monitor_id, s.slot, s.kind, s.scan_id",
        "lanes",
        "the tick: bound to the scan's tenant",
    ),
    (
        "select s.tenant_id, s.monitor_id, s.slot, s.kind, s.scan_id",
        "attempts",
        "the tick: bound to the scan's tenant",
    ),
    (
        "select s.tenant_id, s.monitor_id, s.slot, s.kind, s.scan_id",
        "scans",
        "the tick: bound to the slot's tenant",
    ),
    (
        "select s.tenant_id, s.monitor_id, s.slot, s.kind, s.scan_id",
        "monitors",
        "the tick: bound to the slot's tenant",
    ),
    (
        "select tenant_id, series, unpacked_since as",
        "series",
        "upkeep: products with days to be packed; each is packed by itself",
    ),
    (
        "function mark_unpacked",
        "series",
        "bound to the observations that have just come or gone",
    ),
    (
        "view shown_scans",
        "scans",
        "who reads it names the tenant, which the planner carries into it",
    ),
    ("view shown_scans", "lanes", "bound to the view's own scan"),
    (
        "view shown_scans",
        "key_grants",
        "bound to the view's own scan",
    ),
    (
        "view shown_scans",
        "scan_items",
        "bound to the view's own scan",
    ),
    (
        "view shown_scans",
        "scan_strategies",
        "bound to the view's own scan",
    ),
];

/// Words that end the name of a table instead of being its other name.
const NO_ALIAS: [&str; 27] = [
    "where",
    "on",
    "set",
    "join",
    "left",
    "inner",
    "cross",
    "using",
    "order",
    "group",
    "limit",
    "for",
    "select",
    "values",
    "and",
    "or",
    "with",
    "returning",
    "union",
    "offset",
    "loop",
    "when",
    "then",
    "end",
    "default",
    "natural",
    "right",
];

/// A use of a table: its name, and what its columns are called by.
#[derive(Debug)]
struct Use {
    table: String,
    called: Vec<String>,
}

/// The parts of a function's body, each a statement of its own; a plain statement is its only part.
fn parts(statement: &Statement) -> Vec<String> {
    match statement.kind {
        Kind::Query => vec![statement.sql.clone()],
        Kind::Definition => statement.sql.split(';').map(str::to_owned).collect(),
    }
}

fn uses(sql: &str, tables: &BTreeSet<String>) -> Vec<Use> {
    let tokens = tokens(sql);
    let mut uses = Vec::new();
    for at in 1..tokens.len() {
        let table = tokens[at].text.trim_start_matches("public.");
        let before = tokens[at - 1];
        let is_named = ["from", "join", "update", "using", "only", ",", "("]
            .iter()
            .any(|word| before.is(word));
        if !is_named || !tables.contains(table) {
            continue;
        }
        if before.is(",") && !is_in_from(&tokens, at) {
            continue; // a column of that name
        }
        let mut called = vec![table.to_owned(), String::new()];
        let next = tokens
            .get(at + 1)
            .filter(|next| !next.is("as"))
            .or(tokens.get(at + 2));
        if let Some(alias) =
            next.filter(|next| next.is_word() && !NO_ALIAS.iter().any(|word| next.is(word)))
        {
            called = vec![alias.text.to_owned()];
        } else if before.is("(") {
            continue; // a type or an argument of that name
        }
        uses.push(Use {
            table: table.to_owned(),
            called,
        });
    }
    uses
}

/// Whether a comma here parts the tables of a `from`.
fn is_in_from(tokens: &[super::tenant_conditions::Token<'_>], at: usize) -> bool {
    tokens[..at]
        .iter()
        .rev()
        .take(12)
        .any(|token| token.is("from"))
}

/// The tables that nothing binds to one tenant.
fn unbound(sql: &str, tables: &BTreeSet<String>) -> Vec<String> {
    let uses = uses(sql, tables);
    let qualifier = |side: &str| {
        side.rsplit_once('.')
            .map_or(String::new(), |(qualifier, _)| qualifier.to_owned())
    };
    let users = |side: &str| -> Vec<usize> {
        let is_column = side.rsplit('.').next() == Some("tenant_id");
        let called = qualifier(side);
        let is_it = |used: &&(usize, &Use)| is_column && used.1.called.contains(&called);
        uses.iter()
            .enumerate()
            .collect::<Vec<_>>()
            .iter()
            .filter(is_it)
            .map(|(at, _)| *at)
            .collect()
    };
    let sides: Vec<[Vec<usize>; 2]> = conditions(sql)
        .iter()
        .map(|one| [users(&one.sides[0]), users(&one.sides[1])])
        .collect();
    let mut bound = vec![false; uses.len()];
    // An end that is no table of a tenant is a parameter, a variable, or an array's element.
    loop {
        let mut changed = false;
        for [left, right] in &sides {
            for (from, to) in [(left, right), (right, left)] {
                if from.is_empty() || from.iter().any(|at| bound[*at]) {
                    for at in to {
                        changed |= !std::mem::replace(&mut bound[*at], true);
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    uses.iter()
        .zip(bound)
        .filter(|(_, bound)| !bound)
        .map(|(used, _)| used.table.clone())
        .collect()
}

/// The tables whose rows belong to tenants, from the catalogue.
const TENANT_TABLES: &str = "select c.relname::text from pg_class c
     where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
       and exists (select from pg_attribute t where t.attrelid = c.oid and t.attname = 'tenant_id' and not t.attisdropped)";

#[tokio::test]
async fn every_statement_names_its_tenant_or_is_listed() {
    let db = TestDb::new().await;
    let tables: BTreeSet<String> = values!(db.pool(), TENANT_TABLES).into_iter().collect();
    let mut statements = queries();
    statements.extend(definitions(db.pool()).await);
    let mut found = Vec::new();
    for statement in &statements {
        let tables: BTreeSet<_> = parts(statement)
            .iter()
            .flat_map(|part| unbound(part, &tables))
            .collect();
        found.extend(tables.into_iter().map(|table| (statement, table)));
    }
    let unread: Vec<_> = statements
        .iter()
        .flat_map(|one| unread(&one.sql).into_iter().map(|text| (&one.name, text)))
        .collect();
    assert!(
        unread.is_empty(),
        "tenant conditions are written as equalities: {unread:#?}"
    );
    let is_allowed = |(statement, table): &(&Statement, String)| {
        UNBOUND
            .iter()
            .any(|(words, held, _)| statement.is(words) && held == table)
    };
    let unlisted: Vec<_> = found
        .iter()
        .filter(|one| !is_allowed(one))
        .map(|(one, table)| (table, &one.name, one.words()))
        .collect();
    assert!(
        unlisted.is_empty(),
        "no tenant condition binds these, and no reason is given: {unlisted:#?}"
    );
    let is_gone = |(words, held, _): &&(&str, &str, &str)| {
        !found
            .iter()
            .any(|(one, table)| one.is(words) && table == held)
    };
    let gone: Vec<_> = UNBOUND.iter().filter(is_gone).collect();
    assert!(
        gone.is_empty(),
        "these are bound now, or are no more: {gone:?}"
    );
    println!(
        "{} statements, {} tables, {} uses without a tenant by design",
        statements.len(),
        tables.len(),
        found.len()
    );
}

#[test]
fn a_table_is_bound_by_an_equality_with_a_bound_one() {
    let tables = BTreeSet::from(["scans", "scan_items", "lanes"].map(str::to_owned));
    for (sql, expected) in [
        (
            "select from scans where tenant_id = $1 and scan_id = $2",
            &[][..],
        ),
        ("select from scans where scan_id = $1", &["scans"]),
        (
            "select from scans s join scan_items i on i.scan_id = s.scan_id where s.tenant_id = $1",
            &["scan_items"],
        ),
        (
            "select from scans s join scan_items i on i.tenant_id = s.tenant_id where s.tenant_id = $1",
            &[],
        ),
        (
            "select from scans s join scan_items i on i.tenant_id = s.tenant_id where s.scan_id = $1",
            &["scans", "scan_items"],
        ),
        (
            "update scan_items i set a = 1 from unnest($1::uuid[]) x, scans s where i.tenant_id = $1 and s.scan_id = $2",
            &["scans"],
        ),
        ("update lanes set a = 1", &["lanes"]),
        ("delete from scans as s where s.scan_id = $1", &["scans"]),
        (
            "insert into scans (tenant_id, scan_id) values ($1, $2)",
            &[],
        ),
    ] {
        assert_eq!(unbound(sql, &tables), expected, "{sql}");
    }
}

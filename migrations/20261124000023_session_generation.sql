-- The sessions of the dashboard (security.md, rule 30; docs/decisions/0034).

alter table tenants
    -- Sealed into each session of the caller. Signing out and a change of the key raise it, and sessions of an earlier one have ended.
    add column session_generation integer not null default 1 check (session_generation > 0);

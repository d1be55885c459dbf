-- Channels of kind `apprise` (channels.md, rules 26 to 28; docs/decisions/0060).

alter table channels
    drop constraint channels_kind_check,
    add check (kind in ('ntfy', 'slack', 'email', 'apprise'));

alter table webhook_endpoints
    drop constraint webhook_endpoints_kind_check,
    add check (kind in ('webhook', 'ntfy', 'slack', 'email', 'apprise'));

-- Channels (channels.md; docs/decisions/0058). An endpoint of deliveries is now a monitor's webhook or a channel.

create table channels (
    tenant_id      uuid        not null references tenants,
    channel_id     uuid        not null,
    name           text        not null,
    kind           text        not null check (kind in ('ntfy', 'slack')),
    -- The target without what may be secret; the target itself is sealed (webhook_endpoints.url_id).
    shown_url      text        not null,
    least_priority text        not null check (least_priority in ('low', 'normal', 'high')),
    -- Quiet hours and daily message, as given; null: each message is sent at once.
    notify         json,
    timezone       text        not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    primary key (tenant_id, channel_id)
);

create table monitor_channels (
    tenant_id  uuid     not null references tenants,
    monitor_id uuid     not null,
    channel_id uuid     not null,
    -- Its place in the monitor's list.
    position   smallint not null,
    primary key (tenant_id, monitor_id, channel_id),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade,
    foreign key (tenant_id, channel_id) references channels
);
create index monitor_channels_of_channel on monitor_channels (tenant_id, channel_id);

alter table webhook_endpoints drop constraint webhook_endpoints_pkey;
alter table webhook_endpoints
    alter column monitor_id drop not null,
    add column channel_id uuid,
    add column endpoint_id uuid not null generated always as (coalesce(channel_id, monitor_id)) stored,
    add column kind text not null default 'webhook' check (kind in ('webhook', 'ntfy', 'slack')),
    -- Of a channel: when its last messages were tried, the oldest first, at most as many as an hour may have.
    add column recent timestamptz[] not null default '{}',
    -- Of a channel: the time for which alerts were held last; the next one is later, whatever a clock says.
    add column held_for timestamptz,
    drop constraint webhook_endpoints_off_reason_check,
    add check (off_reason in ('gone', 'failing', 'by_caller')),
    -- A channel may have no token.
    drop constraint webhook_endpoints_secret_ids_check,
    add check (cardinality(secret_ids) between case when channel_id is null then 1 else 0 end and 4),
    add check ((channel_id is null) = (kind = 'webhook') and (channel_id is null) <> (monitor_id is null)),
    add primary key (tenant_id, endpoint_id),
    add unique (tenant_id, monitor_id),
    add foreign key (tenant_id, channel_id) references channels on delete cascade;

alter table deliveries
    alter column monitor_id drop not null,
    add column channel_id uuid,
    -- A message that later alerts join until it is tried.
    add column is_held boolean not null default false,
    add constraint deliveries_channel foreign key (tenant_id, channel_id) references channels on delete cascade not valid,
    add constraint deliveries_endpoint check (monitor_id is not null or channel_id is not null) not valid;
alter table deliveries validate constraint deliveries_channel;
alter table deliveries validate constraint deliveries_endpoint;

-- Pending deliveries only, so it is small.
drop index deliveries_due;
create index deliveries_due on deliveries (tenant_id, (coalesce(channel_id, monitor_id)), due_at, delivery_id) where due_at is not null;
create index deliveries_channel_tests on deliveries (tenant_id, channel_id) where event_type = 'channel.test';
create index deliveries_of_channel on deliveries (tenant_id, channel_id, delivery_id) where channel_id is not null;

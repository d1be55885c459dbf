-- Events are appended to the newest row of their scan, in place of a row for each statement (docs/decisions/0051).

-- Items that changed, the newest first: the item at place p (from 1) has the number first_id + cardinality(items) - p. Null: the number is the
-- scan's own. Appended to, so nothing of the key changes and the new version of a row is heap-only.
create table appended_events (
    tenant_id uuid   not null,
    scan_id   uuid   not null,
    first_id  bigint not null,
    items     uuid[] not null check (cardinality(items) > 0)
);
-- The rows of live scans and of the last day's: older ones are deleted.
insert into appended_events (tenant_id, scan_id, first_id, items)
select e.tenant_id, e.scan_id, e.last_id - cardinality(e.items) + 1,
       (select array_agg(x.item_id order by x.place desc) from unnest(e.items) with ordinality as x (item_id, place))
from scan_events e;
drop table scan_events;
alter table appended_events rename to scan_events;
alter table scan_events
    add primary key (tenant_id, scan_id, first_id),
    add foreign key (tenant_id, scan_id) references scans on delete cascade;

-- What processes of the version before call in their sweeps, while an upgrade is under way.

create function orphans(p_limit integer) returns table (tenant_id uuid, api text, items uuid[], numbers integer[])
language sql as $$ select * from orphans(p_limit, '{}', '{}') $$;
comment on function orphans(integer) is 'for processes of the version before: to be dropped with the next';

create function lanes_with_due_retries(p_limit integer) returns table (tenant_id uuid, api text)
language sql as $$ select * from lanes_with_due_retries(p_limit, '{}', '{}') $$;
comment on function lanes_with_due_retries(integer) is 'for processes of the version before: to be dropped with the next';

-- `below_typical` is what `percentile_at_most` with 40 says, armed again as soon as that is false. `new_low` needs `days`.
create function pg_temp.rule_of_now(rule jsonb) returns jsonb immutable language sql as $$
    select case when rule ->> 'type' = 'below_typical' then rule || '{"type": "percentile_at_most", "percentile": 40, "rearm_percent": 0}'
                when rule ->> 'type' = 'new_low' and rule ->> 'days' is null then rule || '{"days": 365}'
                else rule end $$;

create function pg_temp.rules_of_now(rules json) returns json immutable language sql as $$
    select json_agg(pg_temp.rule_of_now(x.rule) order by x.place) from jsonb_array_elements(rules::jsonb) with ordinality as x (rule, place) $$;

-- The key of the states of such a rule: half of the digest of its canonical form, in which numbers have no zeros at their end.
create function pg_temp.rule_key(rule jsonb) returns bytea immutable language sql as $$
    select substring(sha256(convert_to(format('[%s,[%s]]', rule -> 'type', string_agg(format('["%s",%s]', name, to_json(value)), ',' order by name)), 'UTF8')) from 1 for 16)
    from (values ('confirm', nullif(rule ->> 'confirm', '0')),
                 ('days', rule ->> 'days'),
                 ('percentile', rule ->> 'percentile'),
                 ('rearm_percent', case when rule ->> 'type' <> 'below_typical' then trim_scale(coalesce(rule ->> 'rearm_percent', '2')::numeric)::text end),
                 ('scope', format('"%s"', coalesce(rule ->> 'scope', 'scan')))) as field (name, value)
    where value is not null $$;

-- Rules that have fired have fired. Where an equal rule has states already, those are kept.
with monitors_before as materialized (
    select tenant_id, monitor_id, rules::jsonb from monitors
    where json_typeof(rules) = 'array' and rules::text ~ '"(below_typical|new_low)"'
), converted as materialized (
    select tenant_id, monitor_id, rule, pg_temp.rule_of_now(rule) as rule_of_now from monitors_before, jsonb_array_elements(rules) as x (rule)
    where rule <> pg_temp.rule_of_now(rule)
)
update rule_states s set rule = pg_temp.rule_key(c.rule_of_now) from converted c
where s.tenant_id = c.tenant_id and s.monitor_id = c.monitor_id and s.rule = pg_temp.rule_key(c.rule)
  and not exists (select from rule_states o
                  where o.tenant_id = c.tenant_id and o.monitor_id = c.monitor_id and o.rule = pg_temp.rule_key(c.rule_of_now));

update monitors set rules = pg_temp.rules_of_now(rules)
where json_typeof(rules) = 'array' and rules::text ~ '"(below_typical|new_low)"';

-- Names of hotels and destinations are found whatever their case and the space around them. Ids and airports are what they are.
create function place_key(p_endpoint text, p_place text) returns text
language sql immutable parallel safe as $$
    select case when p_endpoint in ('hotels/by-name', 'hotels/search') then lower(btrim(p_place) collate "C") else p_place end
$$;
drop index series_by_subject;
create index series_by_place on series (tenant_id, endpoint, place_key(endpoint, place), origin);

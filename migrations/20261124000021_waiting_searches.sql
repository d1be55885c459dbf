-- The sweep looks for searches that wait although nothing is called for them any more.
create index shared_searches_waiting on shared_searches (tenant_id, item_id) where waits;

-- Single searches and scans take each other's answers (scans.md, rule 74).

-- Functions of which the arguments have changed (migrations/functions). Dropped at once, because nothing is released.
drop function if exists reusable_answers(timestamptz, uuid, interval, text, integer, boolean, jsonb[], bytea[], date[], date[], boolean);
drop function if exists search_key(text, integer, boolean, jsonb, bytea, date, date);
drop function if exists options_of_search(jsonb);

-- Fewer bytes in the write-ahead log for an item (docs/decisions/0056).

-- An update that finds space on its row's page logs the changed bytes and not the whole row, locks no old row first, and, where it changes no
-- column of an index, writes no index entries. Items and attempts are inserted many at once and updated three times and once.
alter table scan_items set (fillfactor = 65);
alter table attempts set (fillfactor = 70);

-- No statement reads observations by time alone. Each insert of the newest observation wrote the range of its pages anew.
drop index observations_by_time;

-- What a scan's change adds to (change_scans).
alter type ended_calls
    add attribute begun_at timestamptz,   -- its calls began then; null: none began
    add attribute changed  uuid[];        -- items that changed visibly, the newest last; null: none did

-- No condition compares these values, so nothing is gained from samples of them: they were half of what an analysis of all tables logs.
alter table scan_events alter items set statistics 0;
alter table scan_items alter body set statistics 0;
alter table item_offers alter link set statistics 0;
alter table answers alter body set statistics 0;

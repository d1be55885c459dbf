-- A database belongs to one marketplace: prices of two must not stand beside each other as if they were one's, and the key of a caller of
-- one is not shown to the other.

-- Null until a process has asked its marketplace on this database. Set by the first one, changed by `farescan marketplace set` alone.
alter table installation
    add column marketplace       text unique check (length(marketplace) between 1 and 5000),
    add column marketplace_since timestamptz,
    add check ((marketplace is null) = (marketplace_since is null));

-- No lease for a worker of another marketplace, whenever it comes: the key decides, so that there is no moment between a check and what
-- is done after it. Null: a worker of a version that knew no marketplaces.
alter table workers add column marketplace text references installation (marketplace);

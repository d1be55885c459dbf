-- Read by no statement any more, since usage is summed up where it arises (migration 32).
drop index attempts_by_time;

-- A page of a list begins after the last row of the one before: by age, and by id among those of one moment.
CREATE INDEX instances_live_in_pages ON instances (account_id, created_at, id) WHERE status <> 'DESTROYED';
DROP INDEX instances_live_by_account;

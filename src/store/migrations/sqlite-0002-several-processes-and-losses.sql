ALTER TABLE instances ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE work ADD COLUMN create_open_until INTEGER;

CREATE TABLE marks (
  name TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT;

CREATE TABLE installation (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  id TEXT NOT NULL,
  platform TEXT NOT NULL
) STRICT;

CREATE TABLE losses (
  instance_id TEXT PRIMARY KEY REFERENCES instances (id),
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX losses_by_time ON losses (at);

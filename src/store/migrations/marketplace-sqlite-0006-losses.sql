ALTER TABLE volumes ADD COLUMN deletion_taken_at INTEGER;

CREATE TABLE losses (
  subject_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  is_held INTEGER NOT NULL
) STRICT;
CREATE INDEX losses_by_provider ON losses (provider_id, at);

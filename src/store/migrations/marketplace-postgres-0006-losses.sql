ALTER TABLE volumes ADD COLUMN deletion_taken_at BIGINT;

CREATE TABLE losses (
  subject_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  is_held BOOLEAN NOT NULL
);
CREATE INDEX losses_by_provider ON losses (provider_id, at);

CREATE TABLE storage_claims (
  volume_id TEXT PRIMARY KEY REFERENCES volumes (id),
  region TEXT NOT NULL,
  mb INTEGER NOT NULL
) STRICT;
CREATE INDEX storage_claims_by_region ON storage_claims (region, mb);

INSERT INTO storage_claims (volume_id, region, mb)
SELECT id, region, CAST(round(size_gb * 1000 + 0.499) AS INTEGER) FROM volumes
WHERE deleted_at IS NULL AND (status <> 'ERROR' OR id IN (SELECT resource_id FROM work));

CREATE INDEX volumes_live_by_account ON volumes (account_id) WHERE deleted_at IS NULL;
CREATE INDEX tokens_by_account ON tokens (account_id, expires_at);

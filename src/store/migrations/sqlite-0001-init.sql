CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  password_hash TEXT,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  digest BLOB NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  last_four TEXT NOT NULL,
  label TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER
) STRICT;

CREATE TABLE tokens (
  digest BLOB PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  parent_digest BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tokens_by_expiry ON tokens (expires_at);

CREATE TABLE instances (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  owner_ref TEXT NOT NULL UNIQUE,
  name TEXT,
  offer_id TEXT NOT NULL,
  region TEXT NOT NULL,
  status TEXT NOT NULL,
  spec TEXT NOT NULL,
  endpoint TEXT,
  host_key_fingerprint TEXT,
  attach_cycle INTEGER NOT NULL,
  price_micro_usd_per_hour INTEGER NOT NULL,
  error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX instances_live_by_account ON instances (account_id, created_at) WHERE status <> 'DESTROYED';

CREATE TABLE volumes (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  owner_ref TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  size_gb REAL NOT NULL,
  region TEXT NOT NULL,
  type TEXT,
  status TEXT NOT NULL,
  price_micro_usd_per_hour INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT;

CREATE TABLE attachments (
  volume_id TEXT NOT NULL REFERENCES volumes (id),
  instance_id TEXT NOT NULL REFERENCES instances (id),
  state TEXT NOT NULL,
  PRIMARY KEY (volume_id, instance_id)
) STRICT;
CREATE INDEX attachments_by_instance ON attachments (instance_id);

CREATE TABLE claims (
  instance_id TEXT PRIMARY KEY REFERENCES instances (id),
  offer_id TEXT NOT NULL,
  region TEXT NOT NULL
) STRICT;
CREATE INDEX claims_by_placement ON claims (offer_id, region);

CREATE TABLE work (
  resource_id TEXT PRIMARY KEY,
  resource_kind TEXT NOT NULL,
  kind TEXT NOT NULL,
  cookie TEXT,
  attempt INTEGER NOT NULL,
  not_before INTEGER NOT NULL,
  deadline_at INTEGER,
  last_error TEXT,
  lease_token TEXT,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL
) STRICT;
CREATE INDEX work_by_due ON work (resource_kind, not_before);

CREATE TABLE idempotency (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  key TEXT NOT NULL,
  request_digest BLOB NOT NULL,
  resource_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

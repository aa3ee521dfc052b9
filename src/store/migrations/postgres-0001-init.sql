CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  password_hash TEXT,
  created_at BIGINT NOT NULL
);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  digest BYTEA NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  last_four TEXT NOT NULL,
  label TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  last_used_at BIGINT
);

CREATE TABLE tokens (
  digest BYTEA PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  parent_digest BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX tokens_by_expiry ON tokens (expires_at);

CREATE TABLE instances (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  owner_ref TEXT NOT NULL UNIQUE,
  name TEXT,
  offer_id TEXT NOT NULL,
  region TEXT NOT NULL,
  status TEXT NOT NULL,
  spec JSON NOT NULL,
  endpoint JSON,
  host_key_fingerprint TEXT,
  attach_cycle BOOLEAN NOT NULL,
  price_micro_usd_per_hour BIGINT NOT NULL,
  error TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  version INTEGER NOT NULL
);
CREATE INDEX instances_live_by_account ON instances (account_id, created_at) WHERE status <> 'DESTROYED';

CREATE TABLE volumes (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  owner_ref TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  size_gb DOUBLE PRECISION NOT NULL,
  region TEXT NOT NULL,
  type TEXT,
  status TEXT NOT NULL,
  price_micro_usd_per_hour BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  deleted_at BIGINT
);

CREATE TABLE attachments (
  volume_id TEXT NOT NULL REFERENCES volumes (id),
  instance_id TEXT NOT NULL REFERENCES instances (id),
  state TEXT NOT NULL,
  PRIMARY KEY (volume_id, instance_id)
);
CREATE INDEX attachments_by_instance ON attachments (instance_id);

CREATE TABLE claims (
  instance_id TEXT PRIMARY KEY REFERENCES instances (id),
  offer_id TEXT NOT NULL,
  region TEXT NOT NULL
);
CREATE INDEX claims_by_placement ON claims (offer_id, region);

CREATE TABLE work (
  resource_id TEXT PRIMARY KEY,
  resource_kind TEXT NOT NULL,
  kind TEXT NOT NULL,
  cookie TEXT,
  attempt INTEGER NOT NULL,
  not_before BIGINT NOT NULL,
  deadline_at BIGINT,
  last_error TEXT,
  lease_token TEXT,
  lease_owner TEXT,
  lease_until BIGINT NOT NULL,
  create_open_until BIGINT
);
CREATE INDEX work_by_due ON work (resource_kind, not_before);

CREATE TABLE idempotency (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  key TEXT NOT NULL,
  request_digest BYTEA NOT NULL,
  resource_id TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);

CREATE TABLE marks (
  name TEXT PRIMARY KEY,
  at BIGINT NOT NULL
);

CREATE TABLE installation (
  "only" INTEGER PRIMARY KEY CHECK ("only" = 1),
  id TEXT NOT NULL,
  platform TEXT NOT NULL
);

CREATE TABLE losses (
  instance_id TEXT PRIMARY KEY REFERENCES instances (id),
  at BIGINT NOT NULL
);
CREATE INDEX losses_by_time ON losses (at);

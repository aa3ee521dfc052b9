CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  password_hash TEXT,
  created_at INTEGER NOT NULL,
  closed_at INTEGER
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
CREATE INDEX tokens_by_account ON tokens (account_id, expires_at);

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
  updated_at INTEGER NOT NULL,
  version INTEGER NOT NULL,
  create_open_until INTEGER,
  platform TEXT NOT NULL,
  host TEXT,
  destroy_order TEXT
) STRICT;
-- A page of a list begins after the last row of the one before: by age, and by id among those of one moment.
CREATE INDEX instances_live_in_pages ON instances (account_id, created_at, id) WHERE status <> 'DESTROYED';
CREATE INDEX instances_live_by_platform ON instances (platform, host, status) WHERE status <> 'DESTROYED';
CREATE INDEX instances_destroyed_by_platform ON instances (platform, updated_at) WHERE status = 'DESTROYED';
CREATE INDEX instances_live_by_age ON instances (created_at, id) WHERE status <> 'DESTROYED';

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
  deleted_at INTEGER,
  create_open_until INTEGER,
  request_id TEXT,
  platform TEXT NOT NULL,
  host TEXT,
  destroy_order TEXT
) STRICT;
CREATE INDEX volumes_live_by_account ON volumes (account_id) WHERE deleted_at IS NULL;
CREATE INDEX volumes_deleted_by_platform ON volumes (platform, deleted_at) WHERE deleted_at IS NOT NULL;

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
  lease_until INTEGER NOT NULL,
  -- Since when a step has been due, however often it was tried since.
  waits_since INTEGER NOT NULL,
  waited_attempt INTEGER,
  is_held INTEGER NOT NULL,
  platform TEXT NOT NULL,
  fence INTEGER NOT NULL,
  progress TEXT
) STRICT;
CREATE INDEX work_of_platform_by_due ON work (platform, resource_kind, not_before);
CREATE INDEX work_of_platform_by_lease ON work (platform, lease_until, not_before);

CREATE TABLE idempotency (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  key TEXT NOT NULL,
  request_digest BLOB NOT NULL,
  resource_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

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

CREATE TABLE storage_claims (
  volume_id TEXT PRIMARY KEY REFERENCES volumes (id),
  region TEXT NOT NULL,
  mb INTEGER NOT NULL
) STRICT;
CREATE INDEX storage_claims_by_region ON storage_claims (region, mb);

-- Open problems, as every server sees them.
CREATE TABLE alarms (
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  platform TEXT,
  text TEXT NOT NULL,
  since INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  acknowledged_by TEXT,
  note TEXT,
  PRIMARY KEY (kind, subject)
) STRICT;

CREATE TABLE ended_alarms (
  id INTEGER PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  platform TEXT,
  text TEXT NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  acknowledged_by TEXT,
  note TEXT
) STRICT;
CREATE INDEX ended_alarms_by_since ON ended_alarms (since);
CREATE INDEX ended_alarms_by_until ON ended_alarms (until);

-- What each route of alarms was told about each alarm.
CREATE TABLE alarm_notices (
  route TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  since INTEGER NOT NULL,
  platform TEXT,
  text TEXT NOT NULL,
  until INTEGER,
  told TEXT NOT NULL,
  due_at INTEGER,
  attempts INTEGER NOT NULL,
  last_error TEXT,
  PRIMARY KEY (route, kind, subject, since)
) STRICT;
CREATE INDEX alarm_notices_due ON alarm_notices (route, due_at);
CREATE INDEX alarm_notices_by_until ON alarm_notices (until);

-- What happened to each instance: see retention.history_days.
CREATE TABLE history (
  id INTEGER PRIMARY KEY NOT NULL,
  instance_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  cause TEXT NOT NULL,
  attempt INTEGER,
  from_status TEXT,
  to_status TEXT,
  next TEXT,
  detail TEXT,
  calls TEXT NOT NULL,
  console TEXT,
  took_ms INTEGER,
  "by" TEXT
) STRICT;
CREATE INDEX history_by_instance ON history (instance_id);
CREATE INDEX history_outcomes ON history (at) WHERE from_status = 'PROVISIONING' OR to_status = 'ERROR';
CREATE INDEX history_by_time ON history (at);

-- Keys of the admin listener, and what was done with them: see retention.audit_days.
CREATE TABLE operator_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  digest BLOB NOT NULL,
  prefix TEXT NOT NULL,
  last_four TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER,
  last_used_at INTEGER
) STRICT;
CREATE UNIQUE INDEX operator_keys_digest_key ON operator_keys (digest);

CREATE TABLE audit (
  id INTEGER PRIMARY KEY NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  source TEXT NOT NULL,
  address TEXT,
  action TEXT NOT NULL,
  subject TEXT,
  detail TEXT NOT NULL,
  outcome TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_time ON audit (at);

-- Where nothing new is placed, and the maintenance that clients are told of.
CREATE TABLE cordons (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  platform TEXT,
  since INTEGER NOT NULL,
  until INTEGER,
  is_maintenance INTEGER NOT NULL,
  reason TEXT,
  "by" TEXT NOT NULL,
  refusals TEXT
) STRICT;

CREATE TABLE attempts (
  ref TEXT PRIMARY KEY,
  resource_id TEXT NOT NULL,
  resource_kind TEXT NOT NULL,
  platform TEXT NOT NULL,
  host TEXT,
  opened_at INTEGER NOT NULL,
  closed_at INTEGER,
  destroy_order TEXT NOT NULL
) STRICT;
CREATE INDEX attempts_by_resource ON attempts (resource_id);

CREATE TABLE listings (
  platform TEXT NOT NULL,
  resource_kind TEXT NOT NULL,
  began_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  is_complete INTEGER NOT NULL,
  silent_hosts TEXT NOT NULL,
  PRIMARY KEY (platform, resource_kind)
) STRICT;

CREATE TABLE sightings (
  platform TEXT NOT NULL,
  resource_kind TEXT NOT NULL,
  what TEXT NOT NULL,
  name TEXT NOT NULL,
  ref TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  host TEXT,
  since INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY (platform, resource_kind, what, name)
) STRICT;
CREATE INDEX sightings_by_resource ON sightings (resource_id);

CREATE TABLE operator_sessions (
  digest BLOB PRIMARY KEY,
  key_id TEXT NOT NULL,
  ends_at INTEGER NOT NULL
) STRICT;

-- Figures over time, by hour and by day.
CREATE TABLE figures (
  step TEXT NOT NULL,
  at INTEGER NOT NULL,
  series TEXT NOT NULL,
  subject TEXT NOT NULL,
  rows TEXT NOT NULL,
  PRIMARY KEY (step, at, series, subject)
) STRICT;

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  password_hash TEXT,
  created_at BIGINT NOT NULL,
  closed_at BIGINT
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
CREATE INDEX tokens_by_account ON tokens (account_id, expires_at);

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
  version INTEGER NOT NULL,
  create_open_until BIGINT,
  platform TEXT NOT NULL,
  host TEXT,
  destroy_order JSON
);
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
  size_gb DOUBLE PRECISION NOT NULL,
  region TEXT NOT NULL,
  type TEXT,
  status TEXT NOT NULL,
  price_micro_usd_per_hour BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  deleted_at BIGINT,
  create_open_until BIGINT,
  request_id TEXT,
  platform TEXT NOT NULL,
  host TEXT,
  destroy_order JSON
);
CREATE INDEX volumes_live_by_account ON volumes (account_id) WHERE deleted_at IS NULL;
CREATE INDEX volumes_deleted_by_platform ON volumes (platform, deleted_at) WHERE deleted_at IS NOT NULL;

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
  -- Since when a step has been due, however often it was tried since.
  waits_since BIGINT NOT NULL,
  waited_attempt INTEGER,
  is_held BOOLEAN NOT NULL,
  platform TEXT NOT NULL,
  fence BIGINT NOT NULL,
  progress JSON
);
CREATE INDEX work_of_platform_by_due ON work (platform, resource_kind, not_before);
CREATE INDEX work_of_platform_by_lease ON work (platform, lease_until, not_before);

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

CREATE TABLE storage_claims (
  volume_id TEXT PRIMARY KEY REFERENCES volumes (id),
  region TEXT NOT NULL,
  mb BIGINT NOT NULL
);
CREATE INDEX storage_claims_by_region ON storage_claims (region, mb);

-- Open problems, as every server sees them.
CREATE TABLE alarms (
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  platform TEXT,
  text TEXT NOT NULL,
  since BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  acknowledged_by TEXT,
  note TEXT,
  CONSTRAINT alarms_kind_subject_pk PRIMARY KEY (kind, subject)
);

CREATE TABLE ended_alarms (
  id BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  platform TEXT,
  text TEXT NOT NULL,
  since BIGINT NOT NULL,
  until BIGINT NOT NULL,
  acknowledged_by TEXT,
  note TEXT
);
CREATE INDEX ended_alarms_by_since ON ended_alarms (since);
CREATE INDEX ended_alarms_by_until ON ended_alarms (until);

-- What each route of alarms was told about each alarm.
CREATE TABLE alarm_notices (
  route TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  since BIGINT NOT NULL,
  platform TEXT,
  text TEXT NOT NULL,
  until BIGINT,
  told TEXT NOT NULL,
  due_at BIGINT,
  attempts INTEGER NOT NULL,
  last_error TEXT,
  CONSTRAINT alarm_notices_route_kind_subject_since_pk PRIMARY KEY (route, kind, subject, since)
);
CREATE INDEX alarm_notices_due ON alarm_notices (route, due_at);
CREATE INDEX alarm_notices_by_until ON alarm_notices (until);

-- What happened to each instance: see retention.history_days.
CREATE TABLE history (
  id BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  instance_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  cause TEXT NOT NULL,
  attempt INTEGER,
  from_status TEXT,
  to_status TEXT,
  next TEXT,
  detail TEXT,
  calls JSON NOT NULL,
  console TEXT,
  took_ms BIGINT,
  "by" JSON
);
CREATE INDEX history_by_instance ON history (instance_id);
CREATE INDEX history_outcomes ON history (at) WHERE from_status = 'PROVISIONING' OR to_status = 'ERROR';
CREATE INDEX history_by_time ON history (at);

-- Keys of the admin listener, and what was done with them: see retention.audit_days.
CREATE TABLE operator_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  digest BYTEA NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  last_four TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT,
  last_used_at BIGINT
);

CREATE TABLE audit (
  id BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  source TEXT NOT NULL,
  address TEXT,
  action TEXT NOT NULL,
  subject TEXT,
  detail JSON NOT NULL,
  outcome TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (at);

-- Where nothing new is placed, and the maintenance that clients are told of.
CREATE TABLE cordons (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  platform TEXT,
  since BIGINT NOT NULL,
  until BIGINT,
  is_maintenance BOOLEAN NOT NULL,
  reason TEXT,
  "by" TEXT NOT NULL,
  refusals JSON
);

CREATE TABLE attempts (
  ref TEXT PRIMARY KEY,
  resource_id TEXT NOT NULL,
  resource_kind TEXT NOT NULL,
  platform TEXT NOT NULL,
  host TEXT,
  opened_at BIGINT NOT NULL,
  closed_at BIGINT,
  destroy_order JSON NOT NULL
);
CREATE INDEX attempts_by_resource ON attempts (resource_id);

CREATE TABLE listings (
  platform TEXT NOT NULL,
  resource_kind TEXT NOT NULL,
  began_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  is_complete BOOLEAN NOT NULL,
  silent_hosts JSON NOT NULL,
  CONSTRAINT listings_platform_resource_kind_pk PRIMARY KEY (platform, resource_kind)
);

CREATE TABLE sightings (
  platform TEXT NOT NULL,
  resource_kind TEXT NOT NULL,
  what TEXT NOT NULL,
  name TEXT NOT NULL,
  ref TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  host TEXT,
  since BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  detail JSON NOT NULL,
  CONSTRAINT sightings_platform_resource_kind_what_name_pk PRIMARY KEY (platform, resource_kind, what, name)
);
CREATE INDEX sightings_by_resource ON sightings (resource_id);

CREATE TABLE operator_sessions (
  digest BYTEA PRIMARY KEY,
  key_id TEXT NOT NULL,
  ends_at BIGINT NOT NULL
);

-- Figures over time, by hour and by day.
CREATE TABLE figures (
  step TEXT NOT NULL,
  at BIGINT NOT NULL,
  series TEXT NOT NULL,
  subject TEXT NOT NULL,
  rows JSON NOT NULL,
  PRIMARY KEY (step, at, series, subject)
);

CREATE TABLE users (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  current_team_id TEXT,
  may_make_keys BOOLEAN NOT NULL,
  create_limit INTEGER,
  minimum_runtime_minutes DOUBLE PRECISION,
  wants_deployment_mail BOOLEAN NOT NULL,
  wants_marketing_mail BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  suspension JSON
);
CREATE INDEX users_suspended ON users (id) WHERE suspension IS NOT NULL;

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  digest BYTEA NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  last_four TEXT NOT NULL,
  label TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  last_used_at BIGINT
);
CREATE INDEX api_keys_by_user ON api_keys (user_id);

CREATE TABLE teams (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  slug TEXT NOT NULL UNIQUE,
  owner_id TEXT NOT NULL REFERENCES users (id),
  balance_micro_usd BIGINT NOT NULL,
  watch JSON NOT NULL,
  created_at BIGINT NOT NULL,
  member_rights TEXT NOT NULL,
  suspension JSON,
  next_check_at BIGINT
);
CREATE INDEX teams_due ON teams (next_check_at, id) WHERE next_check_at IS NOT NULL;
CREATE INDEX teams_suspended ON teams (id) WHERE suspension IS NOT NULL;

CREATE TABLE members (
  team_id TEXT NOT NULL REFERENCES teams (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  role TEXT NOT NULL,
  joined_at BIGINT NOT NULL,
  PRIMARY KEY (team_id, user_id)
);
CREATE INDEX members_by_user ON members (user_id);

CREATE TABLE discounts (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  source TEXT NOT NULL,
  percentage DOUBLE PRECISION NOT NULL,
  starts_at BIGINT NOT NULL,
  ends_at BIGINT
);
CREATE INDEX discounts_by_team ON discounts (team_id, starts_at);

CREATE TABLE stock_alerts (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  provider_id TEXT NOT NULL,
  offer_id TEXT NOT NULL,
  region TEXT,
  created_at BIGINT NOT NULL,
  was_sold_out BOOLEAN NOT NULL
);
CREATE INDEX stock_alerts_by_user ON stock_alerts (user_id);

CREATE TABLE ssh_keys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  team_id TEXT NOT NULL REFERENCES teams (id),
  name JSON NOT NULL,
  public_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  is_temporary BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX ssh_keys_by_team ON ssh_keys (team_id, created_at);

CREATE TABLE idempotency (
  user_id TEXT NOT NULL REFERENCES users (id),
  key TEXT NOT NULL,
  request_digest BYTEA NOT NULL,
  resource_id TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, key)
);

CREATE TABLE deployments (
  id TEXT PRIMARY KEY,
  name JSON NOT NULL,
  user_id TEXT NOT NULL REFERENCES users (id),
  team_id TEXT NOT NULL REFERENCES teams (id),
  provider_id TEXT NOT NULL,
  offer_id TEXT NOT NULL,
  gpu_type TEXT NOT NULL,
  gpu_model TEXT NOT NULL,
  gpu_count INTEGER NOT NULL,
  region TEXT NOT NULL,
  operating_system TEXT NOT NULL,
  instance_type TEXT NOT NULL,
  vcpus DOUBLE PRECISION NOT NULL,
  memory_gb DOUBLE PRECISION NOT NULL,
  storage_gb DOUBLE PRECISION NOT NULL,
  ssh_key_id TEXT NOT NULL,
  temp_ssh_key_id TEXT,
  ssh_key_name JSON NOT NULL,
  ssh_key_fingerprint TEXT NOT NULL,
  extras JSON NOT NULL,
  provider_minimum_runtime_minutes DOUBLE PRECISION,
  status TEXT NOT NULL,
  ip_address TEXT,
  login_user TEXT,
  ssh_port INTEGER,
  port_forwards JSON NOT NULL,
  failure_reason TEXT,
  failure_details JSON,
  original_rate_micro_usd BIGINT NOT NULL,
  rate_micro_usd BIGINT NOT NULL,
  discount_percentage DOUBLE PRECISION NOT NULL,
  original_stopped_rate_micro_usd BIGINT,
  stopped_rate_micro_usd BIGINT,
  total_cost_micro_usd BIGINT NOT NULL,
  last_credit_deduction_at BIGINT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  stopped_at BIGINT,
  paused_at BIGINT,
  paused_ms BIGINT NOT NULL,
  provider_name TEXT NOT NULL UNIQUE,
  provider_instance_id TEXT,
  launch JSON NOT NULL,
  action JSON,
  suspicion JSON,
  observed_at BIGINT,
  cleanup TEXT NOT NULL,
  revision INTEGER NOT NULL,
  ssh_proof JSON,
  provider_rate_micro_usd BIGINT NOT NULL,
  refusal JSON,
  ordered_provider_rate_micro_usd BIGINT NOT NULL
);
CREATE INDEX deployments_to_tend ON deployments (provider_id)
  WHERE status IN ('deploying', 'running', 'stopped') OR cleanup = 'wanted';
CREATE INDEX deployments_by_team ON deployments (team_id, created_at);
CREATE INDEX deployments_by_user ON deployments (user_id, created_at);
CREATE INDEX deployments_by_time ON deployments (created_at, gpu_type);
CREATE INDEX deployments_active_by_status ON deployments (status) WHERE status IN ('deploying', 'running', 'stopped');
CREATE INDEX deployments_active_by_team ON deployments (team_id, status, original_rate_micro_usd, original_stopped_rate_micro_usd)
  WHERE status IN ('deploying', 'running', 'stopped');
CREATE INDEX deployments_resuming ON deployments (team_id) WHERE status = 'stopped' AND action IS NOT NULL;
CREATE INDEX deployments_by_instance ON deployments (provider_instance_id) WHERE provider_instance_id IS NOT NULL;
CREATE INDEX deployments_new_to_tend ON deployments (provider_id)
  WHERE status = 'deploying' OR cleanup = 'wanted' OR action IS NOT NULL;

CREATE TABLE volumes (
  id TEXT PRIMARY KEY,
  volume_id TEXT NOT NULL UNIQUE,
  name JSON NOT NULL,
  user_id TEXT NOT NULL REFERENCES users (id),
  team_id TEXT NOT NULL REFERENCES teams (id),
  provider_id TEXT NOT NULL,
  region TEXT NOT NULL,
  cloud_id TEXT,
  type TEXT,
  size_gb DOUBLE PRECISION NOT NULL,
  status TEXT NOT NULL,
  original_rate_micro_usd BIGINT NOT NULL,
  rate_micro_usd BIGINT NOT NULL,
  discount_percentage DOUBLE PRECISION NOT NULL,
  discount_ends_at BIGINT,
  last_price_update_at BIGINT NOT NULL,
  total_cost_micro_usd BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  deleted_at BIGINT,
  last_attached_at BIGINT,
  last_detached_at BIGINT,
  provider_name TEXT NOT NULL UNIQUE,
  provider_volume_id TEXT,
  action JSON,
  observed_at BIGINT,
  cleanup TEXT NOT NULL,
  revision INTEGER NOT NULL,
  deletion_taken_at BIGINT,
  request_id TEXT,
  refusal JSON,
  usage JSON,
  resize_given_up_gb DOUBLE PRECISION,
  provider_size_gb DOUBLE PRECISION
);
CREATE INDEX volumes_to_tend ON volumes (provider_id) WHERE action IS NOT NULL OR cleanup = 'wanted' OR status = 'creating';
CREATE INDEX volumes_by_team ON volumes (team_id, created_at);
CREATE INDEX volumes_live_by_team ON volumes (team_id) WHERE status <> 'deleted';
CREATE INDEX volumes_live_by_provider ON volumes (provider_id) WHERE status <> 'deleted';
CREATE INDEX volumes_by_provider_volume ON volumes (provider_volume_id) WHERE provider_volume_id IS NOT NULL;

CREATE TABLE attachments (
  volume_id TEXT NOT NULL REFERENCES volumes (id),
  deployment_id TEXT NOT NULL REFERENCES deployments (id),
  state TEXT NOT NULL,
  intent JSON,
  PRIMARY KEY (volume_id, deployment_id)
);
CREATE INDEX attachments_by_deployment ON attachments (deployment_id);
CREATE INDEX attachments_in_transit ON attachments (volume_id) WHERE state <> 'attached';

CREATE TABLE segments (
  id TEXT PRIMARY KEY,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  team_id TEXT NOT NULL REFERENCES teams (id),
  state TEXT NOT NULL,
  rate_micro_usd_per_hour BIGINT NOT NULL,
  original_rate_micro_usd_per_hour BIGINT NOT NULL,
  discount_percentage DOUBLE PRECISION NOT NULL,
  started_at BIGINT NOT NULL,
  ended_at BIGINT CHECK (ended_at >= started_at),
  posted_until BIGINT NOT NULL CHECK (posted_until >= started_at),
  posted_micro_usd BIGINT NOT NULL,
  provider_rate_micro_usd_per_hour BIGINT
);
CREATE INDEX segments_by_subject ON segments (subject_kind, subject_id, started_at);
CREATE UNIQUE INDEX segments_one_open ON segments (subject_kind, subject_id) WHERE ended_at IS NULL;
CREATE INDEX segments_open ON segments (id) WHERE ended_at IS NULL;
CREATE INDEX segments_open_by_team ON segments (team_id, original_rate_micro_usd_per_hour, posted_until) WHERE ended_at IS NULL;
CREATE INDEX segments_ended ON segments (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX segments_ended_by_team ON segments (team_id, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX segments_due ON segments (posted_until, id) WHERE ended_at IS NULL;

CREATE TABLE ledger_transactions (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  team_id TEXT NOT NULL REFERENCES teams (id),
  at BIGINT NOT NULL,
  memo JSON NOT NULL,
  reference TEXT UNIQUE
);
CREATE INDEX ledger_transactions_by_team ON ledger_transactions (team_id, at);
CREATE INDEX ledger_transactions_credits ON ledger_transactions (at, id) WHERE kind <> 'usage';

CREATE TABLE ledger_entries (
  transaction_id TEXT NOT NULL REFERENCES ledger_transactions (id),
  account TEXT NOT NULL,
  amount_micro_usd BIGINT NOT NULL,
  PRIMARY KEY (transaction_id, account)
);
CREATE INDEX ledger_entries_by_account ON ledger_entries (account, amount_micro_usd);

CREATE TABLE slices (
  segment_id TEXT NOT NULL REFERENCES segments (id),
  slice_end BIGINT NOT NULL,
  amount_micro_usd BIGINT NOT NULL,
  transaction_id TEXT NOT NULL REFERENCES ledger_transactions (id) DEFERRABLE INITIALLY DEFERRED,
  PRIMARY KEY (segment_id, slice_end)
);
CREATE INDEX slices_by_transaction ON slices (transaction_id);

CREATE TABLE mails (
  id TEXT PRIMARY KEY,
  class TEXT NOT NULL,
  kind TEXT NOT NULL,
  dedupe_key TEXT NOT NULL UNIQUE,
  "to" TEXT NOT NULL,
  subject JSON NOT NULL,
  text JSON NOT NULL,
  created_at BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  attempts INTEGER NOT NULL,
  last_error JSON,
  sent_at BIGINT,
  failed_at BIGINT
);
CREATE INDEX mails_due ON mails (due_at) WHERE sent_at IS NULL AND failed_at IS NULL;
CREATE INDEX mails_by_time ON mails (created_at);
CREATE INDEX mails_given_up ON mails (failed_at) WHERE failed_at IS NOT NULL;

CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  token BIGINT NOT NULL,
  holder TEXT NOT NULL,
  until BIGINT NOT NULL
);

CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

-- Of no worth after a crash, and written with every request.
CREATE UNLOGGED TABLE request_counts (
  name TEXT PRIMARY KEY,
  count BIGINT NOT NULL,
  ends_at BIGINT NOT NULL
);
CREATE INDEX request_counts_by_end ON request_counts (ends_at);

CREATE TABLE sales_pauses (
  provider_id TEXT NOT NULL,
  region TEXT NOT NULL,
  offer_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  since BIGINT NOT NULL,
  until BIGINT,
  by TEXT NOT NULL,
  PRIMARY KEY (provider_id, region, offer_id)
);

CREATE TABLE losses (
  subject_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  at BIGINT NOT NULL,
  is_held BOOLEAN NOT NULL
);
CREATE INDEX losses_by_provider ON losses (provider_id, at);
CREATE INDEX losses_held ON losses (provider_id, at) WHERE is_held;

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

CREATE TABLE provider_catalogs (
  provider_id TEXT PRIMARY KEY,
  version BIGINT NOT NULL,
  read_at BIGINT,
  published JSON,
  problems JSON NOT NULL
);

CREATE TABLE operator_sessions (
  digest BYTEA PRIMARY KEY,
  key_id TEXT NOT NULL,
  ends_at BIGINT NOT NULL
);

-- The ledger is append-only.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the ledger is append-only'
    USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'the ledger is append-only';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON slices FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON ledger_entries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON ledger_transactions FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Figures over time, by hour and by day.
CREATE TABLE figures (
  step TEXT NOT NULL,
  at BIGINT NOT NULL,
  series TEXT NOT NULL,
  subject TEXT NOT NULL,
  rows JSON NOT NULL,
  PRIMARY KEY (step, at, series, subject)
);

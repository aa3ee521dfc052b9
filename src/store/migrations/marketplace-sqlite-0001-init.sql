CREATE TABLE users (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  current_team_id TEXT,
  may_make_keys INTEGER NOT NULL,
  create_limit INTEGER,
  minimum_runtime_minutes REAL,
  wants_deployment_mail INTEGER NOT NULL,
  wants_marketing_mail INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  suspension TEXT
) STRICT;
CREATE INDEX users_suspended ON users (id) WHERE suspension IS NOT NULL;

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  digest BLOB NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  last_four TEXT NOT NULL,
  label TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  last_used_at INTEGER
) STRICT;
CREATE INDEX api_keys_by_user ON api_keys (user_id);

CREATE TABLE teams (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  slug TEXT NOT NULL UNIQUE,
  owner_id TEXT NOT NULL REFERENCES users (id),
  balance_micro_usd INTEGER NOT NULL,
  watch TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  member_rights TEXT NOT NULL,
  suspension TEXT,
  next_check_at INTEGER
) STRICT;
CREATE INDEX teams_due ON teams (next_check_at, id) WHERE next_check_at IS NOT NULL;
CREATE INDEX teams_suspended ON teams (id) WHERE suspension IS NOT NULL;

CREATE TABLE members (
  team_id TEXT NOT NULL REFERENCES teams (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  role TEXT NOT NULL,
  joined_at INTEGER NOT NULL,
  PRIMARY KEY (team_id, user_id)
) STRICT;
CREATE INDEX members_by_user ON members (user_id);

CREATE TABLE discounts (
  id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (id),
  source TEXT NOT NULL,
  percentage REAL NOT NULL,
  starts_at INTEGER NOT NULL,
  ends_at INTEGER
) STRICT;
CREATE INDEX discounts_by_team ON discounts (team_id, starts_at);

CREATE TABLE stock_alerts (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  provider_id TEXT NOT NULL,
  offer_id TEXT NOT NULL,
  region TEXT,
  created_at INTEGER NOT NULL,
  was_sold_out INTEGER NOT NULL
) STRICT;
CREATE INDEX stock_alerts_by_user ON stock_alerts (user_id);

CREATE TABLE ssh_keys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  team_id TEXT NOT NULL REFERENCES teams (id),
  name TEXT NOT NULL,
  public_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  is_temporary INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ssh_keys_by_team ON ssh_keys (team_id, created_at);

CREATE TABLE idempotency (
  user_id TEXT NOT NULL REFERENCES users (id),
  key TEXT NOT NULL,
  request_digest BLOB NOT NULL,
  resource_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, key)
) STRICT;

CREATE TABLE deployments (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
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
  vcpus REAL NOT NULL,
  memory_gb REAL NOT NULL,
  storage_gb REAL NOT NULL,
  ssh_key_id TEXT NOT NULL,
  temp_ssh_key_id TEXT,
  ssh_key_name TEXT NOT NULL,
  ssh_key_fingerprint TEXT NOT NULL,
  extras TEXT NOT NULL,
  provider_minimum_runtime_minutes REAL,
  status TEXT NOT NULL,
  ip_address TEXT,
  login_user TEXT,
  ssh_port INTEGER,
  port_forwards TEXT NOT NULL,
  failure_reason TEXT,
  failure_details TEXT,
  original_rate_micro_usd INTEGER NOT NULL,
  rate_micro_usd INTEGER NOT NULL,
  discount_percentage REAL NOT NULL,
  original_stopped_rate_micro_usd INTEGER,
  stopped_rate_micro_usd INTEGER,
  total_cost_micro_usd INTEGER NOT NULL,
  last_credit_deduction_at INTEGER,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  stopped_at INTEGER,
  paused_at INTEGER,
  paused_ms INTEGER NOT NULL,
  provider_name TEXT NOT NULL UNIQUE,
  provider_instance_id TEXT,
  launch TEXT NOT NULL,
  action TEXT,
  suspicion TEXT,
  observed_at INTEGER,
  cleanup TEXT NOT NULL,
  revision INTEGER NOT NULL,
  ssh_proof TEXT,
  provider_rate_micro_usd INTEGER NOT NULL,
  refusal TEXT,
  ordered_provider_rate_micro_usd INTEGER NOT NULL
) STRICT;
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
  name TEXT NOT NULL,
  user_id TEXT NOT NULL REFERENCES users (id),
  team_id TEXT NOT NULL REFERENCES teams (id),
  provider_id TEXT NOT NULL,
  region TEXT NOT NULL,
  cloud_id TEXT,
  type TEXT,
  size_gb REAL NOT NULL,
  status TEXT NOT NULL,
  original_rate_micro_usd INTEGER NOT NULL,
  rate_micro_usd INTEGER NOT NULL,
  discount_percentage REAL NOT NULL,
  discount_ends_at INTEGER,
  last_price_update_at INTEGER NOT NULL,
  total_cost_micro_usd INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  deleted_at INTEGER,
  last_attached_at INTEGER,
  last_detached_at INTEGER,
  provider_name TEXT NOT NULL UNIQUE,
  provider_volume_id TEXT,
  action TEXT,
  observed_at INTEGER,
  cleanup TEXT NOT NULL,
  revision INTEGER NOT NULL,
  deletion_taken_at INTEGER,
  request_id TEXT,
  refusal TEXT,
  usage TEXT,
  resize_given_up_gb REAL,
  provider_size_gb REAL
) STRICT;
CREATE INDEX volumes_to_tend ON volumes (provider_id) WHERE action IS NOT NULL OR cleanup = 'wanted' OR status = 'creating';
CREATE INDEX volumes_by_team ON volumes (team_id, created_at);
CREATE INDEX volumes_live_by_team ON volumes (team_id) WHERE status <> 'deleted';
CREATE INDEX volumes_live_by_provider ON volumes (provider_id) WHERE status <> 'deleted';
CREATE INDEX volumes_by_provider_volume ON volumes (provider_volume_id) WHERE provider_volume_id IS NOT NULL;

CREATE TABLE attachments (
  volume_id TEXT NOT NULL REFERENCES volumes (id),
  deployment_id TEXT NOT NULL REFERENCES deployments (id),
  state TEXT NOT NULL,
  intent TEXT,
  PRIMARY KEY (volume_id, deployment_id)
) STRICT;
CREATE INDEX attachments_by_deployment ON attachments (deployment_id);
CREATE INDEX attachments_in_transit ON attachments (volume_id) WHERE state <> 'attached';

CREATE TABLE segments (
  id TEXT PRIMARY KEY,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  team_id TEXT NOT NULL REFERENCES teams (id),
  state TEXT NOT NULL,
  rate_micro_usd_per_hour INTEGER NOT NULL,
  original_rate_micro_usd_per_hour INTEGER NOT NULL,
  discount_percentage REAL NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER CHECK (ended_at >= started_at),
  posted_until INTEGER NOT NULL CHECK (posted_until >= started_at),
  posted_micro_usd INTEGER NOT NULL,
  provider_rate_micro_usd_per_hour INTEGER
) STRICT;
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
  at INTEGER NOT NULL,
  memo TEXT NOT NULL,
  reference TEXT UNIQUE
) STRICT;
CREATE INDEX ledger_transactions_by_team ON ledger_transactions (team_id, at);
CREATE INDEX ledger_transactions_credits ON ledger_transactions (at, id) WHERE kind <> 'usage';

CREATE TABLE ledger_entries (
  transaction_id TEXT NOT NULL REFERENCES ledger_transactions (id),
  account TEXT NOT NULL,
  amount_micro_usd INTEGER NOT NULL,
  PRIMARY KEY (transaction_id, account)
) STRICT;
CREATE INDEX ledger_entries_by_account ON ledger_entries (account, amount_micro_usd);

CREATE TABLE slices (
  segment_id TEXT NOT NULL REFERENCES segments (id),
  slice_end INTEGER NOT NULL,
  amount_micro_usd INTEGER NOT NULL,
  transaction_id TEXT NOT NULL REFERENCES ledger_transactions (id) DEFERRABLE INITIALLY DEFERRED,
  PRIMARY KEY (segment_id, slice_end)
) STRICT;
CREATE INDEX slices_by_transaction ON slices (transaction_id);

CREATE TABLE mails (
  id TEXT PRIMARY KEY,
  class TEXT NOT NULL,
  kind TEXT NOT NULL,
  dedupe_key TEXT NOT NULL UNIQUE,
  "to" TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  last_error TEXT,
  sent_at INTEGER,
  failed_at INTEGER
) STRICT;
CREATE INDEX mails_due ON mails (due_at) WHERE sent_at IS NULL AND failed_at IS NULL;
CREATE INDEX mails_by_time ON mails (created_at);
CREATE INDEX mails_given_up ON mails (failed_at) WHERE failed_at IS NOT NULL;

CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  token INTEGER NOT NULL,
  holder TEXT NOT NULL,
  until INTEGER NOT NULL
) STRICT;

CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE sales_pauses (
  provider_id TEXT NOT NULL,
  region TEXT NOT NULL,
  offer_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER,
  by TEXT NOT NULL,
  PRIMARY KEY (provider_id, region, offer_id)
) STRICT;

CREATE TABLE losses (
  subject_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  is_held INTEGER NOT NULL
) STRICT;
CREATE INDEX losses_by_provider ON losses (provider_id, at);
CREATE INDEX losses_held ON losses (provider_id, at) WHERE is_held;

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

CREATE TABLE provider_catalogs (
  provider_id TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  read_at INTEGER,
  published TEXT,
  problems TEXT NOT NULL
) STRICT;

CREATE TABLE operator_sessions (
  digest BLOB PRIMARY KEY,
  key_id TEXT NOT NULL,
  ends_at INTEGER NOT NULL
) STRICT;

-- The ledger is append-only.
CREATE TRIGGER ledger_transactions_update BEFORE UPDATE ON ledger_transactions
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_entries_update BEFORE UPDATE ON ledger_entries
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER slices_update BEFORE UPDATE ON slices
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER slices_delete BEFORE DELETE ON slices
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_entries_delete BEFORE DELETE ON ledger_entries
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_transactions_delete BEFORE DELETE ON ledger_transactions
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- Figures over time, by hour and by day.
CREATE TABLE figures (
  step TEXT NOT NULL,
  at INTEGER NOT NULL,
  series TEXT NOT NULL,
  subject TEXT NOT NULL,
  rows TEXT NOT NULL,
  PRIMARY KEY (step, at, series, subject)
) STRICT;

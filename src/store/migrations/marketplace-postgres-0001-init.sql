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
  created_at BIGINT NOT NULL
);

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
  open_segments BIGINT NOT NULL DEFAULT 0,
  open_rate_milli_usd BIGINT NOT NULL DEFAULT 0,
  open_posted BIGINT NOT NULL DEFAULT 0,
  posted_until BIGINT NOT NULL DEFAULT 0,
  next_check_at BIGINT
);
CREATE INDEX teams_due ON teams (next_check_at, id) WHERE next_check_at IS NOT NULL;

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
CREATE INDEX volumes_to_tend ON volumes (provider_id) WHERE action IS NOT NULL OR cleanup = 'wanted';
CREATE INDEX volumes_by_team ON volumes (team_id, created_at);
CREATE INDEX volumes_live_by_team ON volumes (team_id) WHERE status <> 'deleted';
CREATE INDEX volumes_live_by_provider ON volumes (provider_id) WHERE status <> 'deleted';
CREATE INDEX volumes_by_provider_volume ON volumes (provider_volume_id) WHERE provider_volume_id IS NOT NULL;

CREATE TABLE attachments (
  volume_id TEXT NOT NULL REFERENCES volumes (id),
  deployment_id TEXT NOT NULL REFERENCES deployments (id),
  state TEXT NOT NULL,
  PRIMARY KEY (volume_id, deployment_id)
);
CREATE INDEX attachments_by_deployment ON attachments (deployment_id);

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
  provider_rate_micro_usd_per_hour BIGINT,
  next_post_at BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX segments_by_subject ON segments (subject_kind, subject_id, started_at);
CREATE UNIQUE INDEX segments_one_open ON segments (subject_kind, subject_id) WHERE ended_at IS NULL;
CREATE INDEX segments_open ON segments (id) WHERE ended_at IS NULL;
CREATE INDEX segments_open_by_team ON segments (team_id) WHERE ended_at IS NULL;
CREATE INDEX segments_due ON segments (next_post_at, id) WHERE ended_at IS NULL;

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
CREATE INDEX slices_by_end ON slices (slice_end, segment_id);

CREATE TABLE day_lines (
  segment_id TEXT NOT NULL REFERENCES segments (id),
  starts_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  slice_end BIGINT NOT NULL,
  slices INTEGER NOT NULL,
  amount_micro_usd BIGINT NOT NULL,
  transaction_id TEXT NOT NULL REFERENCES ledger_transactions (id),
  PRIMARY KEY (segment_id, ends_at)
);
CREATE INDEX day_lines_by_transaction ON day_lines (transaction_id);

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

-- What is being billed to a team, summed up in its own row.
CREATE FUNCTION count_new_segments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE teams SET open_segments = open_segments + change.count,
    open_rate_milli_usd = open_rate_milli_usd + change.rate,
    open_posted = open_posted + change.posted,
    posted_until = greatest(posted_until, change.until)
  FROM (SELECT team_id, count(*) AS count, sum(((s.original_rate_micro_usd_per_hour + 999) / 1000)) AS rate, sum((((s.original_rate_micro_usd_per_hour + 999) / 1000) * (s.posted_until / 60000))) AS posted,
      max(s.posted_until) AS until
    FROM added s WHERE s.ended_at IS NULL GROUP BY team_id) AS change
  WHERE teams.id = change.team_id;
  RETURN NULL;
END
$$;
CREATE FUNCTION count_changed_segments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE teams SET open_segments = open_segments + change.count,
    open_rate_milli_usd = open_rate_milli_usd + change.rate,
    open_posted = open_posted + change.posted,
    posted_until = greatest(posted_until, change.until)
  FROM (SELECT team_id, sum(sign) AS count, sum(sign * rate) AS rate, sum(sign * posted) AS posted,
      max(until) AS until
    FROM (
      SELECT s.team_id, 1 AS sign, ((s.original_rate_micro_usd_per_hour + 999) / 1000) AS rate, (((s.original_rate_micro_usd_per_hour + 999) / 1000) * (s.posted_until / 60000)) AS posted, s.posted_until AS until
      FROM added s WHERE s.ended_at IS NULL
      UNION ALL
      SELECT s.team_id, -1, ((s.original_rate_micro_usd_per_hour + 999) / 1000), (((s.original_rate_micro_usd_per_hour + 999) / 1000) * (s.posted_until / 60000)), s.posted_until
      FROM removed s WHERE s.ended_at IS NULL) AS each
    GROUP BY team_id) AS change
  WHERE teams.id = change.team_id;
  RETURN NULL;
END
$$;
CREATE TRIGGER insert_load AFTER INSERT ON segments REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_segments();
CREATE TRIGGER update_load AFTER UPDATE ON segments REFERENCING OLD TABLE AS removed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION count_changed_segments();

-- The ledger is append-only.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the ledger is append-only'
    USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'the ledger is append-only';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON day_lines
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON slices FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON ledger_entries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON ledger_transactions FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- A day line takes the place of the slices of its time, all of them, and only if no account's sum changes by it. It takes
-- the place of usage alone, and of as many transactions as there are slices. The slices and what they booked are deleted
-- by its insertion alone.
CREATE FUNCTION refuse_ledger_rows(sentence text, place name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', sentence USING ERRCODE = 'restrict_violation', TABLE = place, CONSTRAINT = sentence;
END
$$;
-- Of one segment a statement writes one line: a second one is not after the lines before it. The few rows of a statement
-- are looked up by their keys, whatever the statistics say.
CREATE FUNCTION replace_slices() RETURNS trigger LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  replaced text[];
BEGIN
  IF EXISTS (
    SELECT 1 FROM added line
    WHERE line.starts_at >= line.ends_at
      OR NOT EXISTS (SELECT 1 FROM segments s WHERE s.id = line.segment_id
        AND (s.posted_until >= line.ends_at OR s.ended_at IS NOT NULL))
      OR EXISTS (SELECT 1 FROM day_lines d WHERE d.segment_id = line.segment_id
        AND d.ends_at > line.starts_at AND d.ends_at <> line.ends_at)
      OR EXISTS (SELECT 1 FROM slices s WHERE s.segment_id = line.segment_id AND s.slice_end <= line.starts_at))
  THEN
    PERFORM refuse_ledger_rows('a day line is of a time that is over, after the lines before it', TG_TABLE_NAME);
  END IF;
  IF EXISTS (
    SELECT 1 FROM added line
    CROSS JOIN LATERAL (
      SELECT count(*) AS slices, count(DISTINCT t.id) FILTER (WHERE t.kind = 'usage') AS usages,
        sum(s.amount_micro_usd) AS amount, max(s.slice_end) AS slice_end
      FROM slices s LEFT JOIN ledger_transactions t ON t.id = s.transaction_id
      WHERE s.segment_id = line.segment_id AND s.slice_end > line.starts_at AND s.slice_end <= line.ends_at) AS whole
    WHERE whole.slices <> line.slices
      OR whole.usages <> line.slices
      OR whole.amount IS DISTINCT FROM line.amount_micro_usd
      OR whole.slice_end IS DISTINCT FROM line.slice_end
      OR NOT EXISTS (SELECT 1 FROM ledger_transactions t
        WHERE t.id = line.transaction_id AND t.kind = 'usage' AND t.at = line.slice_end)
      OR EXISTS (
        SELECT account FROM (
          SELECT e.account, e.amount_micro_usd AS amount FROM slices s
          JOIN ledger_entries e ON e.transaction_id = s.transaction_id
          WHERE s.segment_id = line.segment_id AND s.slice_end > line.starts_at AND s.slice_end <= line.ends_at
          UNION ALL
          SELECT e.account, -e.amount_micro_usd FROM ledger_entries e
          WHERE e.transaction_id = line.transaction_id) AS both_ways
        GROUP BY account HAVING sum(amount) <> 0))
  THEN
    PERFORM refuse_ledger_rows('a day line is not the sum of its slices', TG_TABLE_NAME);
  END IF;
  SELECT array_agg(s.transaction_id) INTO replaced FROM added line
  JOIN slices s ON s.segment_id = line.segment_id AND s.slice_end > line.starts_at AND s.slice_end <= line.ends_at;
  DELETE FROM ledger_entries WHERE transaction_id = ANY (replaced);
  DELETE FROM ledger_transactions WHERE id = ANY (replaced);
  DELETE FROM slices WHERE transaction_id = ANY (replaced);
  RETURN NULL;
END
$$;
CREATE FUNCTION refuse_unless_replaced() RETURNS trigger LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  is_refused boolean;
BEGIN
  IF TG_TABLE_NAME = 'slices' THEN
    is_refused := EXISTS (SELECT 1 FROM removed r WHERE NOT EXISTS (SELECT 1 FROM day_lines d
      WHERE d.segment_id = r.segment_id AND d.ends_at >= r.slice_end AND d.starts_at < r.slice_end));
  ELSIF TG_TABLE_NAME = 'ledger_entries' THEN
    is_refused := EXISTS (SELECT 1 FROM removed r WHERE NOT EXISTS (SELECT 1 FROM slices s JOIN day_lines d
        ON d.segment_id = s.segment_id AND d.ends_at >= s.slice_end AND d.starts_at < s.slice_end
      WHERE s.transaction_id = r.transaction_id));
  ELSE
    is_refused := EXISTS (SELECT 1 FROM removed r WHERE NOT EXISTS (SELECT 1 FROM slices s JOIN day_lines d
        ON d.segment_id = s.segment_id AND d.ends_at >= s.slice_end AND d.starts_at < s.slice_end
      WHERE s.transaction_id = r.id));
  END IF;
  IF is_refused THEN
    PERFORM refuse_ledger_rows('the ledger is append-only', TG_TABLE_NAME);
  END IF;
  RETURN NULL;
END
$$;
CREATE FUNCTION refuse_replaced_slices() RETURNS trigger LANGUAGE plpgsql
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM added a
    WHERE EXISTS (SELECT 1 FROM day_lines d WHERE d.segment_id = a.segment_id AND d.ends_at >= a.slice_end))
  THEN
    PERFORM refuse_ledger_rows('the ledger is append-only', TG_TABLE_NAME);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER replaces_slices AFTER INSERT ON day_lines REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION replace_slices();
CREATE TRIGGER not_replaced AFTER INSERT ON slices REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_replaced_slices();
CREATE TRIGGER replaced_only AFTER DELETE ON slices REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_unless_replaced();
CREATE TRIGGER replaced_only AFTER DELETE ON ledger_entries REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_unless_replaced();
CREATE TRIGGER replaced_only AFTER DELETE ON ledger_transactions REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_unless_replaced();

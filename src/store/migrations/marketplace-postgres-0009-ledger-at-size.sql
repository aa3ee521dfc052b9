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
CREATE INDEX slices_by_transaction ON slices (transaction_id);
CREATE INDEX slices_by_end ON slices (slice_end, segment_id);
ALTER TABLE teams ADD COLUMN open_segments BIGINT NOT NULL DEFAULT 0;
ALTER TABLE teams ADD COLUMN open_rate_milli_usd BIGINT NOT NULL DEFAULT 0;
ALTER TABLE teams ADD COLUMN open_posted BIGINT NOT NULL DEFAULT 0;
ALTER TABLE teams ADD COLUMN posted_until BIGINT NOT NULL DEFAULT 0;

UPDATE teams SET
  open_segments = (SELECT count(*) FROM segments s WHERE s.team_id = teams.id AND s.ended_at IS NULL),
  open_rate_milli_usd = (SELECT coalesce(sum(((s.original_rate_micro_usd_per_hour + 999) / 1000)), 0) FROM segments s
    WHERE s.team_id = teams.id AND s.ended_at IS NULL),
  open_posted = (SELECT coalesce(sum((((s.original_rate_micro_usd_per_hour + 999) / 1000) * (s.posted_until / 60000))), 0) FROM segments s
    WHERE s.team_id = teams.id AND s.ended_at IS NULL),
  posted_until = (SELECT coalesce(max(s.posted_until), 0) FROM segments s
    WHERE s.team_id = teams.id AND s.ended_at IS NULL);

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

-- A day line takes the place of the slices of its time, all of them, and only if no account's sum changes by it. The
-- slices and what they booked are deleted by its insertion alone.
CREATE FUNCTION refuse_day_line() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  whole record;
BEGIN
  IF NEW.starts_at >= NEW.ends_at
    OR NOT EXISTS (SELECT 1 FROM segments WHERE id = NEW.segment_id
      AND (posted_until >= NEW.ends_at OR ended_at IS NOT NULL))
    OR EXISTS (SELECT 1 FROM day_lines WHERE segment_id = NEW.segment_id AND ends_at > NEW.starts_at)
    OR EXISTS (SELECT 1 FROM slices WHERE segment_id = NEW.segment_id AND slice_end <= NEW.starts_at)
  THEN
    RAISE EXCEPTION 'a day line is of a time that is over, after the lines before it'
      USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'a day line is of a time that is over, after the lines before it';
  END IF;
  SELECT count(*) AS slices, sum(amount_micro_usd) AS amount, max(slice_end) AS slice_end INTO whole FROM slices
  WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at;
  IF whole.slices <> NEW.slices
    OR whole.amount IS DISTINCT FROM NEW.amount_micro_usd
    OR whole.slice_end IS DISTINCT FROM NEW.slice_end
    OR NOT EXISTS (SELECT 1 FROM ledger_transactions
      WHERE id = NEW.transaction_id AND kind = 'usage' AND at = NEW.slice_end)
    OR EXISTS (
      SELECT account FROM (
        SELECT account, amount_micro_usd AS amount FROM ledger_entries WHERE transaction_id IN (
          SELECT transaction_id FROM slices
          WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at)
        UNION ALL
        SELECT account, -amount_micro_usd FROM ledger_entries WHERE transaction_id = NEW.transaction_id) AS both_ways
      GROUP BY account HAVING sum(amount) <> 0)
  THEN
    RAISE EXCEPTION 'a day line is not the sum of its slices'
      USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'a day line is not the sum of its slices';
  END IF;
  RETURN NEW;
END
$$;
CREATE FUNCTION replace_slices() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  replaced text[];
BEGIN
  SELECT array_agg(transaction_id) INTO replaced FROM slices
  WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at;
  DELETE FROM ledger_entries WHERE transaction_id = ANY (replaced);
  DELETE FROM ledger_transactions WHERE id = ANY (replaced);
  DELETE FROM slices
  WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at;
  RETURN NULL;
END
$$;
CREATE FUNCTION refuse_unless_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  id_of_transaction text := to_jsonb(OLD) ->> TG_ARGV[0];
BEGIN
  IF NOT EXISTS (SELECT 1 FROM slices s JOIN day_lines d
      ON d.segment_id = s.segment_id AND d.ends_at >= s.slice_end AND d.starts_at < s.slice_end
    WHERE s.transaction_id = id_of_transaction)
  THEN
    RAISE EXCEPTION 'the ledger is append-only'
      USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'the ledger is append-only';
  END IF;
  RETURN OLD;
END
$$;
CREATE FUNCTION refuse_replaced_slice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM day_lines WHERE segment_id = NEW.segment_id AND ends_at >= NEW.slice_end) THEN
    RAISE EXCEPTION 'the ledger is append-only'
      USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'the ledger is append-only';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON day_lines
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER is_sum_of_slices BEFORE INSERT ON day_lines FOR EACH ROW EXECUTE FUNCTION refuse_day_line();
CREATE TRIGGER replaces_slices AFTER INSERT ON day_lines FOR EACH ROW EXECUTE FUNCTION replace_slices();
CREATE TRIGGER not_replaced BEFORE INSERT ON slices FOR EACH ROW EXECUTE FUNCTION refuse_replaced_slice();

DROP TRIGGER append_only ON slices;
DROP TRIGGER append_only ON ledger_entries;
DROP TRIGGER append_only ON ledger_transactions;
CREATE TRIGGER append_only BEFORE UPDATE ON slices FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON ledger_entries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE ON ledger_transactions FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER replaced_only BEFORE DELETE ON slices
  FOR EACH ROW EXECUTE FUNCTION refuse_unless_replaced('transaction_id');
CREATE TRIGGER replaced_only BEFORE DELETE ON ledger_entries
  FOR EACH ROW EXECUTE FUNCTION refuse_unless_replaced('transaction_id');
CREATE TRIGGER replaced_only BEFORE DELETE ON ledger_transactions
  FOR EACH ROW EXECUTE FUNCTION refuse_unless_replaced('id');

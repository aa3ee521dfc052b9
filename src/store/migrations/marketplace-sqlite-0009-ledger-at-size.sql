CREATE TABLE day_lines (
  segment_id TEXT NOT NULL REFERENCES segments (id),
  starts_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  slice_end INTEGER NOT NULL,
  slices INTEGER NOT NULL,
  amount_micro_usd INTEGER NOT NULL,
  transaction_id TEXT NOT NULL REFERENCES ledger_transactions (id),
  PRIMARY KEY (segment_id, ends_at)
) STRICT;
CREATE INDEX day_lines_by_transaction ON day_lines (transaction_id);
CREATE INDEX slices_by_transaction ON slices (transaction_id);
CREATE INDEX slices_by_end ON slices (slice_end, segment_id);
ALTER TABLE teams ADD COLUMN open_segments INTEGER NOT NULL DEFAULT 0;
ALTER TABLE teams ADD COLUMN open_rate_milli_usd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE teams ADD COLUMN open_posted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE teams ADD COLUMN posted_until INTEGER NOT NULL DEFAULT 0;

UPDATE teams SET
  open_segments = (SELECT count(*) FROM segments s WHERE s.team_id = teams.id AND s.ended_at IS NULL),
  open_rate_milli_usd = (SELECT coalesce(sum(((s.original_rate_micro_usd_per_hour + 999) / 1000)), 0) FROM segments s
    WHERE s.team_id = teams.id AND s.ended_at IS NULL),
  open_posted = (SELECT coalesce(sum((((s.original_rate_micro_usd_per_hour + 999) / 1000) * (s.posted_until / 60000))), 0) FROM segments s
    WHERE s.team_id = teams.id AND s.ended_at IS NULL),
  posted_until = (SELECT coalesce(max(s.posted_until), 0) FROM segments s
    WHERE s.team_id = teams.id AND s.ended_at IS NULL);

-- What is being billed to a team, summed up in its own row.
CREATE TRIGGER segments_insert_load AFTER INSERT ON segments WHEN NEW.ended_at IS NULL
BEGIN
  UPDATE teams SET open_segments = open_segments + 1,
    open_rate_milli_usd = open_rate_milli_usd + ((NEW.original_rate_micro_usd_per_hour + 999) / 1000),
    open_posted = open_posted + (((NEW.original_rate_micro_usd_per_hour + 999) / 1000) * (NEW.posted_until / 60000)),
    posted_until = max(posted_until, NEW.posted_until)
  WHERE id = NEW.team_id;
END;
CREATE TRIGGER segments_update_load
AFTER UPDATE OF ended_at, posted_until, original_rate_micro_usd_per_hour ON segments
WHEN OLD.ended_at IS NULL OR NEW.ended_at IS NULL
BEGIN
  UPDATE teams SET
    open_segments = open_segments - (OLD.ended_at IS NULL) + (NEW.ended_at IS NULL),
    open_rate_milli_usd = open_rate_milli_usd
      - (OLD.ended_at IS NULL) * ((OLD.original_rate_micro_usd_per_hour + 999) / 1000)
      + (NEW.ended_at IS NULL) * ((NEW.original_rate_micro_usd_per_hour + 999) / 1000),
    open_posted = open_posted
      - (OLD.ended_at IS NULL) * (((OLD.original_rate_micro_usd_per_hour + 999) / 1000) * (OLD.posted_until / 60000))
      + (NEW.ended_at IS NULL) * (((NEW.original_rate_micro_usd_per_hour + 999) / 1000) * (NEW.posted_until / 60000)),
    posted_until = CASE WHEN NEW.ended_at IS NULL THEN max(posted_until, NEW.posted_until) ELSE posted_until END
  WHERE id = NEW.team_id;
END;

-- A day line takes the place of the slices of its time, all of them, and only if no account's sum changes by it. The
-- slices and what they booked are deleted by its insertion alone.
CREATE TRIGGER day_lines_update BEFORE UPDATE ON day_lines
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER day_lines_delete BEFORE DELETE ON day_lines
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER day_lines_insert BEFORE INSERT ON day_lines
BEGIN
  SELECT RAISE(ABORT, 'a day line is of a time that is over, after the lines before it')
  WHERE NEW.starts_at >= NEW.ends_at
    OR NOT EXISTS (SELECT 1 FROM segments WHERE id = NEW.segment_id
      AND (posted_until >= NEW.ends_at OR ended_at IS NOT NULL))
    OR EXISTS (SELECT 1 FROM day_lines WHERE segment_id = NEW.segment_id AND ends_at > NEW.starts_at)
    OR EXISTS (SELECT 1 FROM slices WHERE segment_id = NEW.segment_id AND slice_end <= NEW.starts_at);
  SELECT RAISE(ABORT, 'a day line is not the sum of its slices')
  WHERE (NEW.slices, NEW.amount_micro_usd, NEW.slice_end) IS NOT (
      SELECT count(*), sum(amount_micro_usd), max(slice_end) FROM slices
      WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at)
    OR NOT EXISTS (SELECT 1 FROM ledger_transactions
      WHERE id = NEW.transaction_id AND kind = 'usage' AND at = NEW.slice_end)
    OR EXISTS (
      SELECT account FROM (
        SELECT account, amount_micro_usd AS amount FROM ledger_entries WHERE transaction_id IN (
          SELECT transaction_id FROM slices
          WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at)
        UNION ALL
        SELECT account, -amount_micro_usd FROM ledger_entries WHERE transaction_id = NEW.transaction_id)
      GROUP BY account HAVING sum(amount) <> 0);
END;
CREATE TRIGGER day_lines_replace AFTER INSERT ON day_lines
BEGIN
  DELETE FROM ledger_entries WHERE transaction_id IN (
    SELECT transaction_id FROM slices
    WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at);
  DELETE FROM ledger_transactions WHERE id IN (
    SELECT transaction_id FROM slices
    WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at);
  DELETE FROM slices
  WHERE segment_id = NEW.segment_id AND slice_end > NEW.starts_at AND slice_end <= NEW.ends_at;
END;
CREATE TRIGGER slices_insert BEFORE INSERT ON slices
WHEN EXISTS (SELECT 1 FROM day_lines WHERE segment_id = NEW.segment_id AND ends_at >= NEW.slice_end)
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

DROP TRIGGER slices_delete;
DROP TRIGGER ledger_entries_delete;
DROP TRIGGER ledger_transactions_delete;
CREATE TRIGGER slices_delete BEFORE DELETE ON slices
WHEN NOT EXISTS (SELECT 1 FROM day_lines
  WHERE segment_id = OLD.segment_id AND ends_at >= OLD.slice_end AND starts_at < OLD.slice_end)
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_entries_delete BEFORE DELETE ON ledger_entries
WHEN NOT EXISTS (SELECT 1 FROM slices s JOIN day_lines d
    ON d.segment_id = s.segment_id AND d.ends_at >= s.slice_end AND d.starts_at < s.slice_end
  WHERE s.transaction_id = OLD.transaction_id)
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_transactions_delete BEFORE DELETE ON ledger_transactions
WHEN NOT EXISTS (SELECT 1 FROM slices s JOIN day_lines d
    ON d.segment_id = s.segment_id AND d.ends_at >= s.slice_end AND d.starts_at < s.slice_end
  WHERE s.transaction_id = OLD.id)
  BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

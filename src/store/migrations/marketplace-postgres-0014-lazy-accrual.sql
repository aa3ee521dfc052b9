ALTER TABLE "teams" ADD COLUMN "next_check_at" bigint;
ALTER TABLE "segments" ADD COLUMN "next_post_at" bigint DEFAULT 0 NOT NULL;
CREATE INDEX "teams_due" ON "teams" USING btree ("next_check_at","id") WHERE "teams"."next_check_at" IS NOT NULL;
CREATE INDEX "segments_due" ON "segments" USING btree ("next_post_at","id") WHERE "segments"."ended_at" IS NULL;

-- The billing job looks at each once, and finds out when it has to do so again.
UPDATE teams SET next_check_at = 0;

-- Many day lines are written by one statement: what was checked and deleted for each row is for all of them together.
DROP TRIGGER is_sum_of_slices ON day_lines;
DROP TRIGGER replaces_slices ON day_lines;
DROP TRIGGER not_replaced ON slices;
DROP TRIGGER replaced_only ON slices;
DROP TRIGGER replaced_only ON ledger_entries;
DROP TRIGGER replaced_only ON ledger_transactions;
DROP FUNCTION refuse_day_line();
DROP FUNCTION replace_slices();
DROP FUNCTION refuse_replaced_slice();
DROP FUNCTION refuse_unless_replaced();

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
      SELECT count(*) AS slices, sum(s.amount_micro_usd) AS amount, max(s.slice_end) AS slice_end FROM slices s
      WHERE s.segment_id = line.segment_id AND s.slice_end > line.starts_at AND s.slice_end <= line.ends_at) AS whole
    WHERE whole.slices <> line.slices
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

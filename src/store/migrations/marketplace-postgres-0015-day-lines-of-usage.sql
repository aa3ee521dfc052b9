-- A day line takes the place of usage alone, and of as many transactions as there are slices.
CREATE OR REPLACE FUNCTION replace_slices() RETURNS trigger LANGUAGE plpgsql
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

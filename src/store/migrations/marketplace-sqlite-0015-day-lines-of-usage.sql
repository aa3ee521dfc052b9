-- A day line takes the place of usage alone, and of as many transactions as there are slices.
DROP TRIGGER day_lines_insert;
CREATE TRIGGER day_lines_insert BEFORE INSERT ON day_lines
BEGIN
  SELECT RAISE(ABORT, 'a day line is of a time that is over, after the lines before it')
  WHERE NEW.starts_at >= NEW.ends_at
    OR NOT EXISTS (SELECT 1 FROM segments WHERE id = NEW.segment_id
      AND (posted_until >= NEW.ends_at OR ended_at IS NOT NULL))
    OR EXISTS (SELECT 1 FROM day_lines WHERE segment_id = NEW.segment_id AND ends_at > NEW.starts_at)
    OR EXISTS (SELECT 1 FROM slices WHERE segment_id = NEW.segment_id AND slice_end <= NEW.starts_at);
  SELECT RAISE(ABORT, 'a day line is not the sum of its slices')
  WHERE (NEW.slices, NEW.slices, NEW.amount_micro_usd, NEW.slice_end) IS NOT (
      SELECT count(*), count(DISTINCT t.id) FILTER (WHERE t.kind = 'usage'), sum(s.amount_micro_usd), max(s.slice_end)
      FROM slices s LEFT JOIN ledger_transactions t ON t.id = s.transaction_id
      WHERE s.segment_id = NEW.segment_id AND s.slice_end > NEW.starts_at AND s.slice_end <= NEW.ends_at)
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

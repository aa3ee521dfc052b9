-- The request that made a volume, as its line in the log names it. Null: it was made before that was kept.
ALTER TABLE volumes ADD COLUMN request_id TEXT;

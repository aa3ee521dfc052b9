-- Since when a step has been due, however often it was tried since. Null: by a server of an older version.
ALTER TABLE work ADD COLUMN waits_since INTEGER;
UPDATE work SET waits_since = not_before;

-- Until when a create may still turn up belongs to the machine or the volume, not to its work.
ALTER TABLE instances ADD COLUMN create_open_until INTEGER;
ALTER TABLE volumes ADD COLUMN create_open_until INTEGER;

-- What has no open work may have been made just now: from now on the platform has its time to show it.
UPDATE instances SET create_open_until = CAST(strftime('%s', 'now') AS INTEGER) * 1000 WHERE status <> 'DESTROYED';
UPDATE volumes SET create_open_until = CAST(strftime('%s', 'now') AS INTEGER) * 1000 WHERE deleted_at IS NULL;
UPDATE instances SET create_open_until = work.create_open_until
  FROM work WHERE work.resource_id = instances.id AND work.create_open_until IS NOT NULL;
UPDATE volumes SET create_open_until = work.create_open_until
  FROM work WHERE work.resource_id = volumes.id AND work.create_open_until IS NOT NULL;
-- The greatest number that is exact in JSON: as long as the create is open work, it may be sent again.
UPDATE instances SET create_open_until = 9007199254740991
  WHERE id IN (SELECT resource_id FROM work WHERE kind = 'create');
UPDATE volumes SET create_open_until = 9007199254740991
  WHERE id IN (SELECT resource_id FROM work WHERE kind = 'create');

ALTER TABLE work DROP COLUMN create_open_until;

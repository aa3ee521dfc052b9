CREATE INDEX volumes_failed ON volumes (provider_id)
  WHERE status = 'error' AND started_at IS NOT NULL AND deleted_at IS NULL;

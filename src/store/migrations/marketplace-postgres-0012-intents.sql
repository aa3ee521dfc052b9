DROP INDEX volumes_failed;
DROP INDEX deployments_new_to_tend;
ALTER TABLE deployments ADD COLUMN refusal JSON;
ALTER TABLE volumes ADD COLUMN refusal JSON;
CREATE INDEX deployments_by_instance ON deployments (provider_instance_id) WHERE provider_instance_id IS NOT NULL;
CREATE INDEX deployments_new_to_tend ON deployments (provider_id)
  WHERE status = 'deploying' OR cleanup = 'wanted' OR action IS NOT NULL;

-- What an earlier version began was sent, or may have been, and its answer is not known.
UPDATE deployments SET action = ((action::jsonb - 'isSent') || jsonb_build_object(
  'id', revision, 'by', user_id, 'until', NULL, 'attempt', 1, 'sentAt', action -> 'since', 'answer', NULL))::json
WHERE action IS NOT NULL;
UPDATE volumes SET action = (action::jsonb || jsonb_build_object(
  'id', revision, 'by', user_id, 'until', NULL, 'answer', NULL,
  'attempt', CASE WHEN action ->> 'kind' = 'create' AND create_sent_at IS NULL THEN 0 ELSE 1 END,
  'sentAt', CASE WHEN action ->> 'kind' = 'create' THEN to_jsonb(create_sent_at) ELSE (action -> 'since')::jsonb END))::json
WHERE action IS NOT NULL;
ALTER TABLE volumes DROP COLUMN create_sent_at;

CREATE INDEX deployments_active_by_status ON deployments (status) WHERE status IN ('deploying', 'running', 'stopped');

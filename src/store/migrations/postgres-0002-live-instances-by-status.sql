CREATE INDEX instances_live_by_status ON instances (status) WHERE status <> 'DESTROYED';

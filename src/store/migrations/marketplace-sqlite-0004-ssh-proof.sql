ALTER TABLE deployments ADD COLUMN ssh_proof TEXT;

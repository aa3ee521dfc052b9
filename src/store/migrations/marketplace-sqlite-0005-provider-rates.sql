ALTER TABLE deployments ADD COLUMN provider_rate_micro_usd INTEGER;
ALTER TABLE segments ADD COLUMN provider_rate_micro_usd_per_hour INTEGER;

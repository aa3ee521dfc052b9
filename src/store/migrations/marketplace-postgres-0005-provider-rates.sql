ALTER TABLE deployments ADD COLUMN provider_rate_micro_usd BIGINT;
ALTER TABLE segments ADD COLUMN provider_rate_micro_usd_per_hour BIGINT;

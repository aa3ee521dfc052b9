ALTER TABLE `deployments` ADD `ordered_provider_rate_micro_usd` integer;
CREATE INDEX `volumes_by_provider_volume` ON `volumes` (`provider_volume_id`) WHERE "volumes"."provider_volume_id" IS NOT NULL;

-- Each row names its platform; those from before had the only one. Work, tombstones and counts are of one platform each.
DROP INDEX `instances_live_by_status`;
DROP INDEX `instances_destroyed_by_time`;
ALTER TABLE `instances` ADD `platform` text NOT NULL DEFAULT 'default';
ALTER TABLE `instances` ADD `host` text;
CREATE INDEX `instances_live_by_platform` ON `instances` (`platform`,`host`,`status`) WHERE "instances"."status" <> 'DESTROYED';
CREATE INDEX `instances_destroyed_by_platform` ON `instances` (`platform`,`updated_at`) WHERE "instances"."status" = 'DESTROYED';
DROP INDEX `volumes_deleted_by_time`;
ALTER TABLE `volumes` ADD `platform` text NOT NULL DEFAULT 'default';
CREATE INDEX `volumes_deleted_by_platform` ON `volumes` (`platform`,`deleted_at`) WHERE "volumes"."deleted_at" IS NOT NULL;
DROP INDEX `work_by_due`;
DROP INDEX `work_by_lease`;
ALTER TABLE `work` ADD `platform` text NOT NULL DEFAULT 'default';
CREATE INDEX `work_of_platform_by_due` ON `work` (`platform`,`resource_kind`,`not_before`);
CREATE INDEX `work_of_platform_by_lease` ON `work` (`platform`,`lease_until`,`not_before`);

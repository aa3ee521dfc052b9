DROP INDEX `instances_by_change`;
ALTER TABLE `instances` DROP COLUMN `changed_in`;
DROP INDEX `volumes_by_change`;
ALTER TABLE `volumes` DROP COLUMN `version`;
ALTER TABLE `volumes` DROP COLUMN `changed_in`;

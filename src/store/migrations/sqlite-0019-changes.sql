ALTER TABLE `instances` ADD `changed_in` integer DEFAULT 0 NOT NULL;
CREATE INDEX `instances_by_change` ON `instances` (`account_id`,`changed_in`,`id`);
ALTER TABLE `volumes` ADD `version` integer DEFAULT 1 NOT NULL;
ALTER TABLE `volumes` ADD `changed_in` integer DEFAULT 0 NOT NULL;
CREATE INDEX `volumes_by_change` ON `volumes` (`account_id`,`changed_in`,`id`);

ALTER TABLE `work` ADD `progress` text;
UPDATE `alarms` SET `kind` = 'leftover' WHERE `kind` = 'disk_left';

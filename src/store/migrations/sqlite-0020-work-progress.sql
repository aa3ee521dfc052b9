ALTER TABLE `work` ADD `progress` text;

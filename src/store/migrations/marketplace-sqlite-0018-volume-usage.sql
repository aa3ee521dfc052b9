ALTER TABLE `volumes` ADD `usage` text;

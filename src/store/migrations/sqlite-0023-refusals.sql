ALTER TABLE `cordons` ADD `refusals` text;

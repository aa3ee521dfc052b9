ALTER TABLE `accounts` ADD `closed_at` integer;
ALTER TABLE `history` ADD `by` text;

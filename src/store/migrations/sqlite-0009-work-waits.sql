ALTER TABLE `work` ADD `waited_attempt` integer;
ALTER TABLE `work` ADD `is_held` integer NOT NULL DEFAULT 0;
-- Until now the text of the last error told it.
UPDATE `work` SET `is_held` = 1 WHERE `last_error` = 'held: too many instances were lost at once';

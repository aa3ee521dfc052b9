ALTER TABLE `teams` ADD `next_check_at` integer;
CREATE INDEX `teams_due` ON `teams` (`next_check_at`,`id`) WHERE "teams"."next_check_at" IS NOT NULL;
ALTER TABLE `segments` ADD `next_post_at` integer DEFAULT 0 NOT NULL;
CREATE INDEX `segments_due` ON `segments` (`next_post_at`,`id`) WHERE "segments"."ended_at" IS NULL;

-- The billing job looks at each once, and finds out when it has to do so again.
UPDATE teams SET next_check_at = 0;

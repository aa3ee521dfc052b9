CREATE TABLE `operator_sessions` (
	`digest` blob PRIMARY KEY NOT NULL,
	`key_id` text NOT NULL,
	`ends_at` integer NOT NULL
) STRICT;

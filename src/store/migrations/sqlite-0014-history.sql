-- What happened to each instance: see retention.history_days.
CREATE TABLE `history` (
	`id` integer PRIMARY KEY NOT NULL,
	`instance_id` text NOT NULL,
	`at` integer NOT NULL,
	`cause` text NOT NULL,
	`attempt` integer,
	`from_status` text,
	`to_status` text,
	`next` text,
	`detail` text,
	`calls` text NOT NULL,
	`console` text,
	`took_ms` integer
) STRICT;
CREATE INDEX `history_by_instance` ON `history` (`instance_id`);

-- What stands wrong until it is mended, as every server sees it.
CREATE TABLE `alarms` (
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`platform` text,
	`text` text NOT NULL,
	`since` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`acknowledged_by` text,
	PRIMARY KEY(`kind`, `subject`)
) STRICT;

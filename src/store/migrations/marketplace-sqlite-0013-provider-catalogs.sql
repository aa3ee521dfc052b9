CREATE TABLE `provider_catalogs` (
	`provider_id` text PRIMARY KEY NOT NULL,
	`version` integer NOT NULL,
	`read_at` integer,
	`published` text,
	`problems` text NOT NULL
) STRICT;

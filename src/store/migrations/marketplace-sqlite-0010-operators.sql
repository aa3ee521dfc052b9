-- Keys of the admin listener, and what was done with them: see retention.audit_days.
CREATE TABLE `operator_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`digest` blob NOT NULL,
	`prefix` text NOT NULL,
	`last_four` text NOT NULL,
	`created_at` integer NOT NULL,
	`revoked_at` integer,
	`last_used_at` integer
) STRICT;
CREATE UNIQUE INDEX `operator_keys_digest_key` ON `operator_keys` (`digest`);
CREATE TABLE `audit` (
	`id` integer PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`actor` text NOT NULL,
	`source` text NOT NULL,
	`address` text,
	`action` text NOT NULL,
	`subject` text,
	`detail` text NOT NULL,
	`outcome` text NOT NULL
) STRICT;
CREATE INDEX `ledger_transactions_credits` ON `ledger_transactions` (`at`,`id`) WHERE "ledger_transactions"."kind" <> 'usage';

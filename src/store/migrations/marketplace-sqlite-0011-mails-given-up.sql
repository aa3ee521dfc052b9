CREATE INDEX `mails_given_up` ON `mails` (`failed_at`) WHERE "mails"."failed_at" IS NOT NULL;

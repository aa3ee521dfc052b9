CREATE INDEX "mails_given_up" ON "mails" USING btree ("failed_at") WHERE "mails"."failed_at" IS NOT NULL;

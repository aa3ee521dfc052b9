ALTER TABLE "instances" ADD COLUMN "changed_in" bigint DEFAULT 0 NOT NULL;
ALTER TABLE "volumes" ADD COLUMN "version" integer DEFAULT 1 NOT NULL;
ALTER TABLE "volumes" ADD COLUMN "changed_in" bigint DEFAULT 0 NOT NULL;
CREATE INDEX "instances_by_change" ON "instances" USING btree ("account_id","changed_in","id");
CREATE INDEX "volumes_by_change" ON "volumes" USING btree ("account_id","changed_in","id");

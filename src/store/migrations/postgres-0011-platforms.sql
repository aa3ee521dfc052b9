-- Each row names its platform; those from before had the only one. Work, tombstones and counts are of one platform each.
DROP INDEX "instances_live_by_status";
DROP INDEX "instances_destroyed_by_time";
DROP INDEX "volumes_deleted_by_time";
DROP INDEX "work_by_due";
DROP INDEX "work_by_lease";
ALTER TABLE "instances" ADD COLUMN "platform" text NOT NULL DEFAULT 'default';
ALTER TABLE "instances" ADD COLUMN "host" text;
ALTER TABLE "volumes" ADD COLUMN "platform" text NOT NULL DEFAULT 'default';
ALTER TABLE "work" ADD COLUMN "platform" text NOT NULL DEFAULT 'default';
CREATE INDEX "instances_live_by_platform" ON "instances" USING btree ("platform","host","status") WHERE "instances"."status" <> 'DESTROYED';
CREATE INDEX "instances_destroyed_by_platform" ON "instances" USING btree ("platform","updated_at") WHERE "instances"."status" = 'DESTROYED';
CREATE INDEX "volumes_deleted_by_platform" ON "volumes" USING btree ("platform","deleted_at") WHERE "volumes"."deleted_at" IS NOT NULL;
CREATE INDEX "work_of_platform_by_due" ON "work" USING btree ("platform","resource_kind","not_before");
CREATE INDEX "work_of_platform_by_lease" ON "work" USING btree ("platform","lease_until","not_before");

CREATE INDEX "instances_destroyed_by_time" ON "instances" USING btree ("updated_at") WHERE "instances"."status" = 'DESTROYED';
CREATE INDEX "volumes_deleted_by_time" ON "volumes" USING btree ("deleted_at") WHERE "volumes"."deleted_at" IS NOT NULL;

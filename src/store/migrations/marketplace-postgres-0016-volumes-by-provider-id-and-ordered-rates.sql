ALTER TABLE "deployments" ADD COLUMN "ordered_provider_rate_micro_usd" bigint;
CREATE INDEX "volumes_by_provider_volume" ON "volumes" USING btree ("provider_volume_id") WHERE "volumes"."provider_volume_id" IS NOT NULL;

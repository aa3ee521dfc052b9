CREATE INDEX "deployments_new_to_tend" ON "deployments" USING btree ("provider_id") WHERE "deployments"."status" = 'deploying' OR "deployments"."cleanup" = 'wanted';
CREATE INDEX "deployments_active_by_team" ON "deployments" USING btree ("team_id","status","original_rate_micro_usd","original_stopped_rate_micro_usd") WHERE "deployments"."status" IN ('deploying', 'running', 'stopped');
CREATE INDEX "deployments_resuming" ON "deployments" USING btree ("team_id") WHERE "deployments"."status" = 'stopped' AND "deployments"."action" IS NOT NULL;
CREATE INDEX "volumes_live_by_team" ON "volumes" USING btree ("team_id") WHERE "volumes"."status" <> 'deleted';
CREATE INDEX "volumes_live_by_provider" ON "volumes" USING btree ("provider_id") WHERE "volumes"."status" <> 'deleted';
CREATE INDEX "losses_held" ON "losses" USING btree ("provider_id","at") WHERE "losses"."is_held";

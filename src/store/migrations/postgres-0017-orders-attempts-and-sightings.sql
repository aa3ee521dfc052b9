CREATE TABLE "attempts" (
	"ref" text PRIMARY KEY NOT NULL,
	"resource_id" text NOT NULL,
	"resource_kind" text NOT NULL,
	"platform" text NOT NULL,
	"host" text,
	"opened_at" bigint NOT NULL,
	"closed_at" bigint,
	"destroy_order" json NOT NULL
);
CREATE TABLE "listings" (
	"platform" text NOT NULL,
	"resource_kind" text NOT NULL,
	"began_at" bigint NOT NULL,
	"ended_at" bigint NOT NULL,
	"is_complete" boolean NOT NULL,
	"silent_hosts" json NOT NULL,
	CONSTRAINT "listings_platform_resource_kind_pk" PRIMARY KEY("platform","resource_kind")
);
CREATE TABLE "sightings" (
	"platform" text NOT NULL,
	"resource_kind" text NOT NULL,
	"what" text NOT NULL,
	"name" text NOT NULL,
	"ref" text NOT NULL,
	"resource_id" text NOT NULL,
	"host" text,
	"since" bigint NOT NULL,
	"seen_at" bigint NOT NULL,
	"detail" json NOT NULL,
	CONSTRAINT "sightings_platform_resource_kind_what_name_pk" PRIMARY KEY("platform","resource_kind","what","name")
);
ALTER TABLE "instances" ADD COLUMN "destroy_order" json;
ALTER TABLE "volumes" ADD COLUMN "host" text;
ALTER TABLE "volumes" ADD COLUMN "destroy_order" json;
ALTER TABLE "work" ADD COLUMN "fence" bigint DEFAULT 0 NOT NULL;
CREATE INDEX "attempts_by_resource" ON "attempts" USING btree ("resource_id");
CREATE INDEX "sightings_by_resource" ON "sightings" USING btree ("resource_id");
-- Removals that were requested before orders were kept. What the platform lost has none: nobody asked for its end.
UPDATE "instances" SET "destroy_order" = json_build_object('reason', CASE WHEN "status" IN ('DESTROYING', 'DESTROYED') THEN 'tenant' ELSE 'failed_create' END, 'by', "account_id", 'at', "updated_at")
	WHERE "status" IN ('DESTROYING', 'DESTROYED', 'ERROR', 'OFFLINE') AND "id" NOT IN (SELECT "instance_id" FROM "losses");
UPDATE "volumes" SET "destroy_order" = json_build_object('reason', CASE WHEN "status" = 'ERROR' THEN 'failed_create' ELSE 'tenant' END, 'by', "account_id", 'at', coalesce("deleted_at", "created_at"))
	WHERE "status" IN ('DELETING', 'ERROR') OR "deleted_at" IS NOT NULL;
UPDATE "work" SET "kind" = 'release', "cookie" = NULL, "deadline_at" = NULL
	WHERE "kind" = 'destroy' AND "resource_id" IN (SELECT "id" FROM "instances" WHERE "destroy_order" IS NULL);

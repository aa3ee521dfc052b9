-- Where nothing new is placed, and the maintenance that clients are told of.
CREATE TABLE "cordons" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"platform" text,
	"since" bigint NOT NULL,
	"until" bigint,
	"is_maintenance" boolean NOT NULL,
	"reason" text,
	"by" text NOT NULL
);

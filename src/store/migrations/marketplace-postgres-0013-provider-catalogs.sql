CREATE TABLE "provider_catalogs" (
	"provider_id" text PRIMARY KEY NOT NULL,
	"version" bigint NOT NULL,
	"read_at" bigint,
	"published" json,
	"problems" json NOT NULL
);

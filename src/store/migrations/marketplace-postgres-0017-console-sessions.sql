CREATE TABLE "operator_sessions" (
	"digest" "bytea" PRIMARY KEY NOT NULL,
	"key_id" text NOT NULL,
	"ends_at" bigint NOT NULL
);

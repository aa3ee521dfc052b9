-- Keys of the admin listener, and what was done with them: see retention.audit_days.
CREATE TABLE "operator_keys" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"digest" "bytea" NOT NULL,
	"prefix" text NOT NULL,
	"last_four" text NOT NULL,
	"created_at" bigint NOT NULL,
	"revoked_at" bigint,
	"last_used_at" bigint,
	CONSTRAINT "operator_keys_digest_key" UNIQUE("digest")
);
CREATE TABLE "audit" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" bigint NOT NULL,
	"actor" text NOT NULL,
	"source" text NOT NULL,
	"address" text,
	"action" text NOT NULL,
	"subject" text,
	"detail" json NOT NULL,
	"outcome" text NOT NULL
);
CREATE INDEX "ledger_transactions_credits" ON "ledger_transactions" USING btree ("at","id") WHERE "ledger_transactions"."kind" <> 'usage';

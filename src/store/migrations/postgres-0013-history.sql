-- What happened to each instance: see retention.history_days.
CREATE TABLE "history" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "history_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"instance_id" text NOT NULL,
	"at" bigint NOT NULL,
	"cause" text NOT NULL,
	"attempt" integer,
	"from_status" text,
	"to_status" text,
	"next" text,
	"detail" text,
	"calls" json NOT NULL,
	"console" text,
	"took_ms" bigint
);
CREATE INDEX "history_by_instance" ON "history" USING btree ("instance_id");

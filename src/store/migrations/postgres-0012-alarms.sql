-- What stands wrong until it is mended, as every server sees it.
CREATE TABLE "alarms" (
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"platform" text,
	"text" text NOT NULL,
	"since" bigint NOT NULL,
	"last_seen_at" bigint NOT NULL,
	"acknowledged_by" text,
	CONSTRAINT "alarms_kind_subject_pk" PRIMARY KEY("kind","subject")
);

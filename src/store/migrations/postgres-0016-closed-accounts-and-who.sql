ALTER TABLE "accounts" ADD COLUMN "closed_at" bigint;
ALTER TABLE "history" ADD COLUMN "by" json;

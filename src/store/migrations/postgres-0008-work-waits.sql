ALTER TABLE "work" ADD COLUMN "waited_attempt" integer;
ALTER TABLE "work" ADD COLUMN "is_held" boolean NOT NULL DEFAULT false;
-- Until now the text of the last error told it.
UPDATE "work" SET "is_held" = true WHERE "last_error" = 'held: too many instances were lost at once';

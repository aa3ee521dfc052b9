ALTER TABLE "work" ADD COLUMN "progress" json;
UPDATE "alarms" SET "kind" = 'leftover' WHERE "kind" = 'disk_left';

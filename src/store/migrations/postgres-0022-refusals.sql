ALTER TABLE "cordons" ADD COLUMN "refusals" json;

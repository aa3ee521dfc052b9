ALTER TABLE "work" ADD COLUMN "progress" json;

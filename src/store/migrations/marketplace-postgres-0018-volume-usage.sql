ALTER TABLE "volumes" ADD COLUMN "usage" json;

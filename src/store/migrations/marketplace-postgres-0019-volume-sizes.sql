ALTER TABLE "volumes" ADD COLUMN "resize_given_up_gb" double precision;
ALTER TABLE "volumes" ADD COLUMN "provider_size_gb" double precision;

ALTER TABLE `volumes` ADD `resize_given_up_gb` real;
ALTER TABLE `volumes` ADD `provider_size_gb` real;

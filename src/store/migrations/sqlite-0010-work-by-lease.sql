CREATE INDEX work_by_lease ON work (lease_until,not_before);

CREATE TABLE "leases" (
	"worker" text PRIMARY KEY NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "leases" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);--> statement-breakpoint
-- The clock of leases; a test sets it.
CREATE FUNCTION clock() RETURNS timestamp with time zone LANGUAGE sql STABLE PARALLEL SAFE AS 'select now()';

CREATE INDEX CONCURRENTLY "jobs_open" ON "jobs" USING btree ("owner") WHERE num_nulls(finished) = 1;--> statement-breakpoint
DROP INDEX CONCURRENTLY "jobs_open_owner";--> statement-breakpoint
DROP INDEX CONCURRENTLY "jobs_dispatched";--> statement-breakpoint
DROP INDEX CONCURRENTLY "jobs_leased";

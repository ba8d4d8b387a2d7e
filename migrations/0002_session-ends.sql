DROP INDEX "jobs_session";--> statement-breakpoint
CREATE INDEX "jobs_session" ON "jobs" USING btree ("session","finished");
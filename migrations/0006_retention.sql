CREATE TABLE "leftover_runs" (
	"id" text PRIMARY KEY NOT NULL,
	"session" text,
	"run_at" timestamp with time zone NOT NULL,
	"may_keep_running" boolean NOT NULL,
	"since" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "uploads" ADD COLUMN "parse_end" jsonb;--> statement-breakpoint
CREATE INDEX "leftover_runs_session" ON "leftover_runs" USING btree ("session");--> statement-breakpoint
CREATE INDEX "leftover_runs_since" ON "leftover_runs" USING btree ("since");--> statement-breakpoint
CREATE INDEX CONCURRENTLY "jobs_retention" ON "jobs" USING btree ("finished") WHERE num_nonnulls(finished) = 1;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "sessions_ended" ON "sessions" USING btree ("ended") WHERE ended is not null and sealed is null;--> statement-breakpoint
-- Each job leaves some dead rows behind, and a day's jobs go each day: with the default of 20 % the tables would hold a week's.
ALTER TABLE "jobs" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);--> statement-breakpoint
ALTER TABLE "job_chunks" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);--> statement-breakpoint
ALTER TABLE "job_segments" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

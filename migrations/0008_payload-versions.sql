ALTER TABLE "jobs" ADD COLUMN "payload_version" smallint DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "workers" ADD COLUMN "understands" jsonb;
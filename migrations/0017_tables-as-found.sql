ALTER TABLE "artifacts" ADD COLUMN "dialect" jsonb;--> statement-breakpoint
ALTER TABLE "uploads" ADD COLUMN "skipped" jsonb;
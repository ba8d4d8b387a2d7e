DROP INDEX "jobs_streamed_output";--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "output_streamed" boolean DEFAULT false NOT NULL;--> statement-breakpoint
UPDATE "jobs" SET "output_streamed" = true WHERE "kind" IN ('browse', 'file');--> statement-breakpoint
CREATE INDEX "jobs_streamed_output" ON "jobs" USING btree ("finished") WHERE output_streamed and stdout_bytes > 0;

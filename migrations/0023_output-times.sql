-- The default comes after: rows that are there do not say when they were stored.
ALTER TABLE "job_chunks" ADD COLUMN "at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "job_chunks" ALTER COLUMN "at" SET DEFAULT now();--> statement-breakpoint
ALTER TABLE "job_segments" ADD COLUMN "times" jsonb;

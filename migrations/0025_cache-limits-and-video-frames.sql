CREATE TABLE "video_frames" (
	"job" text PRIMARY KEY NOT NULL,
	"frames" "bytea" NOT NULL
);
--> statement-breakpoint
ALTER TABLE "cache_entries" ADD COLUMN "used" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "video_frames" ADD CONSTRAINT "video_frames_job_jobs_id_fk" FOREIGN KEY ("job") REFERENCES "public"."jobs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "cache_entries_used" ON "cache_entries" USING btree ("project","used","size");
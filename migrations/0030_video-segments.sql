CREATE TABLE "video_segments" (
	"id" text PRIMARY KEY NOT NULL,
	"job" text NOT NULL,
	"attempt" text NOT NULL,
	"start" integer NOT NULL,
	"until" integer NOT NULL,
	"sure" integer NOT NULL,
	"done" integer DEFAULT 0 NOT NULL,
	"token" text,
	"worker" text,
	"began" timestamp with time zone DEFAULT now() NOT NULL,
	"seen" timestamp with time zone DEFAULT now() NOT NULL,
	"finished" timestamp with time zone,
	"object" text,
	"refused" boolean DEFAULT false NOT NULL,
	"ffmpeg" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "video_segments" ADD CONSTRAINT "video_segments_job_jobs_id_fk" FOREIGN KEY ("job") REFERENCES "public"."jobs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "video_segments_job" ON "video_segments" USING btree ("job");
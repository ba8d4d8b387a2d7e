CREATE TABLE "job_statistics" (
	"minute" timestamp with time zone NOT NULL,
	"kind" text NOT NULL,
	"succeeded" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"cancelled" integer DEFAULT 0 NOT NULL,
	"waits" integer[] DEFAULT '{}' NOT NULL,
	"longest_wait" real,
	"durations" integer[] DEFAULT '{}' NOT NULL,
	"longest_duration" real,
	"waiting" integer,
	"running" integer,
	CONSTRAINT "job_statistics_minute_kind_pk" PRIMARY KEY("minute","kind")
);
--> statement-breakpoint
CREATE TABLE "job_statistics_progress" (
	"id" smallint PRIMARY KEY DEFAULT 1 NOT NULL,
	"ended_until" timestamp with time zone NOT NULL,
	"sampled" timestamp with time zone
);

CREATE TABLE "uncounted_jobs" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"state" text NOT NULL,
	"created" timestamp with time zone NOT NULL,
	"started" timestamp with time zone,
	"finished" timestamp with time zone NOT NULL
);

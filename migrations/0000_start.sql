CREATE TABLE "job_chunks" (
	"job" text NOT NULL,
	"seq" bigint NOT NULL,
	"stream" smallint NOT NULL,
	"start" bigint NOT NULL,
	"bytes" "bytea" NOT NULL,
	CONSTRAINT "job_chunks_job_seq_pk" PRIMARY KEY("job","seq")
);
--> statement-breakpoint
CREATE TABLE "hosts" (
	"name" text PRIMARY KEY NOT NULL,
	"address" text NOT NULL,
	"port" integer DEFAULT 22 NOT NULL,
	"keys" text[] NOT NULL,
	"agent" boolean DEFAULT false NOT NULL,
	"private" boolean DEFAULT false NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"owner" text NOT NULL,
	"route" text NOT NULL,
	"key" text NOT NULL,
	"body" text NOT NULL,
	"job" text NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "idempotency_keys_owner_route_key_pk" PRIMARY KEY("owner","route","key")
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"queue" text NOT NULL,
	"owner" text NOT NULL,
	"session" text,
	"payload" jsonb NOT NULL,
	"state" text DEFAULT 'queued' NOT NULL,
	"progress" real,
	"message" text,
	"result" jsonb,
	"error" jsonb,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"started" timestamp with time zone,
	"finished" timestamp with time zone,
	"version" bigint DEFAULT 0 NOT NULL,
	"retry_of" text,
	"epoch" integer DEFAULT 0 NOT NULL,
	"dispatched" timestamp with time zone,
	"not_before" timestamp with time zone,
	"attempt" text,
	"lease" timestamp with time zone,
	"worker" text,
	"setbacks" smallint DEFAULT 0 NOT NULL,
	"cancel_requested" timestamp with time zone,
	"stdout_bytes" bigint DEFAULT 0 NOT NULL,
	"stderr_bytes" bigint DEFAULT 0 NOT NULL,
	"run_at" timestamp with time zone,
	"run_boot" text,
	"unreachable_since" timestamp with time zone,
	"run_forgotten" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "job_segments" (
	"job" text NOT NULL,
	"stream" smallint NOT NULL,
	"start" bigint NOT NULL,
	"length" bigint NOT NULL,
	"object" text NOT NULL,
	CONSTRAINT "job_segments_job_stream_start_pk" PRIMARY KEY("job","stream","start")
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"sid" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL,
	"hostname" text NOT NULL,
	"username" text NOT NULL,
	"agent" boolean NOT NULL,
	"sealed" "bytea",
	"shell" text,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"accessed" timestamp with time zone DEFAULT now() NOT NULL,
	"opened" timestamp with time zone,
	"ended" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "users" (
	"username" text PRIMARY KEY NOT NULL,
	"password_hash" text NOT NULL,
	"administrator" boolean DEFAULT false NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "workers" (
	"id" text PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"pid" integer NOT NULL,
	"slots" jsonb NOT NULL,
	"started" timestamp with time zone DEFAULT now() NOT NULL,
	"seen" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE INDEX "job_chunks_start" ON "job_chunks" USING btree ("job","stream","start");--> statement-breakpoint
CREATE INDEX "idempotency_created" ON "idempotency_keys" USING btree ("created");--> statement-breakpoint
CREATE INDEX "jobs_due" ON "jobs" USING btree ("queue","id") WHERE finished is null and attempt is null;--> statement-breakpoint
CREATE INDEX "jobs_leased" ON "jobs" USING btree ("lease") WHERE finished is null and attempt is not null;--> statement-breakpoint
CREATE INDEX "jobs_owner" ON "jobs" USING btree ("owner","id");--> statement-breakpoint
CREATE INDEX "jobs_open_owner" ON "jobs" USING btree ("owner") WHERE finished is null;--> statement-breakpoint
CREATE INDEX "jobs_session" ON "jobs" USING btree ("session");--> statement-breakpoint
CREATE INDEX "jobs_unforgotten" ON "jobs" USING btree ("session") WHERE run_at is not null and not run_forgotten;--> statement-breakpoint
CREATE INDEX "sessions_owner" ON "sessions" USING btree ("owner","sid") WHERE ended is null;--> statement-breakpoint
CREATE INDEX "sessions_idle" ON "sessions" USING btree ("accessed") WHERE sealed is not null;
CREATE TABLE "batch_polls" (
	"hostname" text PRIMARY KEY NOT NULL,
	"due" timestamp with time zone DEFAULT now() NOT NULL,
	"worker" text,
	"turn" text DEFAULT '' NOT NULL
);
--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "batch" jsonb;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "engines" text[];--> statement-breakpoint
CREATE INDEX "batch_polls_due" ON "batch_polls" USING btree ("due");
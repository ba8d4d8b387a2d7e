ALTER TABLE "jobs" ADD COLUMN "host" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "label" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "name" text;--> statement-breakpoint
ALTER TABLE "workers" ADD COLUMN "draining" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "workers" ADD COLUMN "release" text;
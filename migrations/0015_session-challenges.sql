ALTER TABLE "sessions" ADD COLUMN "interactive" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "holder" text;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "challenge_expires" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "answers" "bytea";
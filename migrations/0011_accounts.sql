ALTER TABLE "tokens" ADD COLUMN "used" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "disabled" boolean DEFAULT false NOT NULL;
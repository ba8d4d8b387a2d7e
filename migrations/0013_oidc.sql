CREATE TABLE "spent_oidc_states" (
	"state" text PRIMARY KEY NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "users" ALTER COLUMN "password_hash" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "issuer" text;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "subject" text;--> statement-breakpoint
CREATE INDEX "spent_oidc_states_expires" ON "spent_oidc_states" USING btree ("expires");--> statement-breakpoint
CREATE UNIQUE INDEX CONCURRENTLY "users_subject" ON "users" USING btree ("issuer","subject");
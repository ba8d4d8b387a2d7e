CREATE TABLE "installation" (
	"id" text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
INSERT INTO "installation" VALUES (gen_random_uuid()::text);

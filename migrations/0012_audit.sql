CREATE TABLE "audit_chain" (
	"id" smallint PRIMARY KEY DEFAULT 1 NOT NULL,
	"before_seq" bigint DEFAULT 0 NOT NULL,
	"before_hash" text DEFAULT '0000000000000000000000000000000000000000000000000000000000000000' NOT NULL,
	"last_seq" bigint DEFAULT 0 NOT NULL,
	"last_hash" text DEFAULT '0000000000000000000000000000000000000000000000000000000000000000' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit_entries" (
	"seq" bigint PRIMARY KEY NOT NULL,
	"time" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"username" text,
	"address" text,
	"action" text NOT NULL,
	"target" text,
	"outcome" text DEFAULT 'ok' NOT NULL,
	"request_id" text,
	"hash" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit_pending" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_pending_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"time" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"username" text,
	"address" text,
	"action" text NOT NULL,
	"target" text,
	"outcome" text DEFAULT 'ok' NOT NULL,
	"request_id" text
);
--> statement-breakpoint
ALTER TABLE "failed_logins" ADD COLUMN "audited" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "audit_entries_username" ON "audit_entries" USING btree ("username","seq");--> statement-breakpoint
CREATE INDEX "audit_entries_action" ON "audit_entries" USING btree ("action","seq");--> statement-breakpoint
CREATE INDEX "audit_entries_time" ON "audit_entries" USING btree ("time");--> statement-breakpoint
INSERT INTO "audit_chain" ("id") VALUES (1);--> statement-breakpoint
-- Each entry passes through: vacuum keeps the front of its index short.
ALTER TABLE "audit_pending" SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

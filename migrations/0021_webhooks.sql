CREATE TABLE "webhook_deliveries" (
	"job" text NOT NULL,
	"webhook" text NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"attempts" smallint DEFAULT 0 NOT NULL,
	"first_tried" timestamp with time zone,
	"last_tried" timestamp with time zone,
	"due" timestamp with time zone DEFAULT now() NOT NULL,
	"status" smallint,
	"problem" text,
	"record" jsonb,
	CONSTRAINT "webhook_deliveries_job_webhook_pk" PRIMARY KEY("job","webhook")
);
--> statement-breakpoint
CREATE TABLE "webhooks" (
	"id" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL,
	"url" text NOT NULL,
	"kinds" text[],
	"states" text[],
	"sealed" "bytea" NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"failing_since" timestamp with time zone,
	"problem" text,
	"disabled" timestamp with time zone,
	"taken_by" text,
	"taken_until" timestamp with time zone,
	"not_before" timestamp with time zone,
	"served" timestamp with time zone
);
--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("webhook","due") WHERE state = 'pending';--> statement-breakpoint
CREATE INDEX "webhook_deliveries_webhook" ON "webhook_deliveries" USING btree ("webhook","job");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_created" ON "webhook_deliveries" USING btree ("created");--> statement-breakpoint
CREATE INDEX "webhooks_owner" ON "webhooks" USING btree ("owner","id");--> statement-breakpoint
-- Wherever a job ends, its end is written down for the webhooks of its owner in the same transaction. Programs have no right
-- to write it: the trigger acts with the rights of the tables' owner.
CREATE FUNCTION "tell_webhooks"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
	INSERT INTO "webhook_deliveries" ("webhook", "job")
	SELECT w."id", NEW."id" FROM "webhooks" w
	WHERE w."owner" = NEW."owner" AND w."disabled" IS NULL
		AND (w."kinds" IS NULL OR NEW."kind" = ANY(w."kinds"))
		AND (w."states" IS NULL OR NEW."state" = ANY(w."states"))
	ON CONFLICT DO NOTHING;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "jobs_tell_webhooks" AFTER UPDATE OF "finished" ON "jobs" FOR EACH ROW
	WHEN (OLD."finished" IS NULL AND NEW."finished" IS NOT NULL) EXECUTE FUNCTION "tell_webhooks"();

CREATE TABLE "job_history" (
	"job" text NOT NULL,
	"seq" smallint NOT NULL,
	"event" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"worker" text,
	CONSTRAINT "job_history_job_seq_pk" PRIMARY KEY("job","seq")
);
--> statement-breakpoint
ALTER TABLE "job_history" ADD CONSTRAINT "job_history_job_jobs_id_fk" FOREIGN KEY ("job") REFERENCES "public"."jobs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
-- Programs have no right to write it: the trigger acts with the rights of the tables' owner. A job whose host comes and goes
-- keeps its first 1,000 events.
CREATE FUNCTION "keep_job_history"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
	"latest" record;
BEGIN
	SELECT "seq", "event" INTO "latest" FROM "job_history" WHERE "job" = NEW."id" ORDER BY "seq" DESC LIMIT 1;
	-- A job that is released now and then, as batch jobs are, is claimed very often: only who goes on after a loss is told.
	IF TG_ARGV[0] = 'claimed' AND "latest"."event" IS DISTINCT FROM 'lease_lost' OR "latest"."seq" >= 1000 THEN
		RETURN NULL;
	END IF;
	INSERT INTO "job_history" ("job", "seq", "event", "worker")
	VALUES (NEW."id", coalesce("latest"."seq", 0) + 1, TG_ARGV[0], NEW."worker");
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "jobs_history_lost" AFTER UPDATE OF "consecutive_losses" ON "jobs" FOR EACH ROW
	WHEN (NEW."consecutive_losses" > OLD."consecutive_losses") EXECUTE FUNCTION "keep_job_history"('lease_lost');--> statement-breakpoint
CREATE TRIGGER "jobs_history_claimed" AFTER UPDATE OF "lease_token" ON "jobs" FOR EACH ROW
	WHEN (OLD."lease_token" IS NULL AND NEW."lease_token" IS NOT NULL AND NEW."consecutive_losses" > 0)
	EXECUTE FUNCTION "keep_job_history"('claimed');--> statement-breakpoint
CREATE TRIGGER "jobs_history_away" AFTER UPDATE OF "unreachable_since" ON "jobs" FOR EACH ROW
	WHEN (OLD."unreachable_since" IS NULL AND NEW."unreachable_since" IS NOT NULL)
	EXECUTE FUNCTION "keep_job_history"('host_unreachable');--> statement-breakpoint
CREATE TRIGGER "jobs_history_back" AFTER UPDATE OF "unreachable_since" ON "jobs" FOR EACH ROW
	WHEN (OLD."unreachable_since" IS NOT NULL AND NEW."unreachable_since" IS NULL AND NEW."finished" IS NULL)
	EXECUTE FUNCTION "keep_job_history"('reconnected');

ALTER TABLE "jobs" ADD COLUMN "payload_bytes" integer;--> statement-breakpoint
CREATE OR REPLACE FUNCTION "count_output"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
	"had" bigint := OLD."stdout_bytes" + OLD."stderr_bytes" + coalesce(OLD."payload_bytes", 0);
	"has" bigint;
BEGIN
	IF TG_OP = 'UPDATE' THEN
		"has" := NEW."stdout_bytes" + NEW."stderr_bytes" + coalesce(NEW."payload_bytes", 0);
	END IF;
	IF TG_OP = 'UPDATE' AND NEW."owner" = OLD."owner" THEN
		PERFORM "change_storage"(NEW."owner", "has" - "had", now());
		IF OLD."kind" = 'video' AND OLD."result" IS NULL THEN
			PERFORM "change_video"(NEW."owner", 1, NEW."result", NEW."finished");
		END IF;
		RETURN NULL;
	END IF;
	PERFORM "change_storage"(OLD."owner", -"had", now());
	IF OLD."kind" = 'video' THEN PERFORM "change_video"(OLD."owner", -1, OLD."result", OLD."finished"); END IF;
	IF TG_OP = 'UPDATE' THEN
		PERFORM "change_storage"(NEW."owner", "has", now());
		IF OLD."kind" = 'video' THEN PERFORM "change_video"(NEW."owner", 1, NEW."result", NEW."finished"); END IF;
	END IF;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE FUNCTION "count_payload"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
	PERFORM "change_storage"(NEW."owner", NEW."payload_bytes", now());
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "jobs_stored_payload" AFTER INSERT ON "jobs" FOR EACH ROW
	WHEN (NEW."payload_bytes" > 0) EXECUTE FUNCTION "count_payload"();--> statement-breakpoint
CREATE OR REPLACE TRIGGER "jobs_stored_no_more" AFTER DELETE ON "jobs" FOR EACH ROW
	WHEN (OLD."stdout_bytes" > 0 OR OLD."stderr_bytes" > 0 OR OLD."payload_bytes" > 0 OR OLD."kind" = 'video')
	EXECUTE FUNCTION "count_output"();

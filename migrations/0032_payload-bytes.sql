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
--> statement-breakpoint
-- As it was, with the stills.
CREATE OR REPLACE FUNCTION "change_video"("who" text, "sign" integer, "result" jsonb, "finished" timestamp with time zone)
	RETURNS void LANGUAGE sql AS $$
	SELECT "public"."change_storage"("who", "sign" * "bytes", now()),
		"public"."change_storage"("who", -"sign" * "bytes", "finished" + interval '25 hours')
	FROM (SELECT coalesce("result" ->> 'stored', "result" ->> 'bytes')::bigint AS "bytes") "video"
	WHERE "result" ->> 'object' IS NOT NULL AND "finished" > now() - interval '25 hours';
$$;--> statement-breakpoint
-- Who may insert entries must not be able to stop the chain, by values that it cannot take or by their size.
CREATE FUNCTION "bound_audit"() RETURNS trigger LANGUAGE plpgsql
	SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
	NEW."time" := CASE WHEN isfinite(NEW."time")
		THEN least(greatest(NEW."time", '2000-01-01Z'), '2999-01-01Z') ELSE now() END;
	NEW."username" := left(NEW."username", 600);
	NEW."address" := left(NEW."address", 600);
	NEW."action" := left(NEW."action", 600);
	NEW."target" := left(NEW."target", 10000);
	NEW."outcome" := left(NEW."outcome", 600);
	NEW."request_id" := left(NEW."request_id", 600);
	RETURN NEW;
END $$;--> statement-breakpoint
CREATE TRIGGER "audit_pending_bounded" BEFORE INSERT ON "audit_pending" FOR EACH ROW
	WHEN (NOT isfinite(NEW."time") OR NEW."time" < '2000-01-01Z' OR NEW."time" > '2999-01-01Z' OR char_length(
		coalesce(NEW."username", '') || coalesce(NEW."address", '') || NEW."action" || coalesce(NEW."target", '')
		|| NEW."outcome" || coalesce(NEW."request_id", '')) > 600)
	EXECUTE FUNCTION "bound_audit"();

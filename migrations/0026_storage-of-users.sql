CREATE TABLE "storage_changes" (
	"due" timestamp with time zone DEFAULT now() NOT NULL,
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "storage_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"owner" text NOT NULL,
	"bytes" bigint NOT NULL,
	CONSTRAINT "storage_changes_due_id_pk" PRIMARY KEY("due","id")
);
--> statement-breakpoint
CREATE TABLE "user_storage" (
	"owner" text PRIMARY KEY NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL,
	"counted" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "artifacts" ADD COLUMN "stored_by" text;--> statement-breakpoint
ALTER TABLE "bookmarks" ADD COLUMN "size" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "bookmarks" ADD COLUMN "stored_by" text;--> statement-breakpoint
ALTER TABLE "cache_entries" ADD COLUMN "stored_by" text;--> statement-breakpoint
ALTER TABLE "table_views" ADD COLUMN "stored_by" text;--> statement-breakpoint
CREATE INDEX "storage_changes_owner" ON "storage_changes" USING btree ("owner","due");--> statement-breakpoint
CREATE INDEX CONCURRENTLY "artifacts_stored_by" ON "artifacts" USING btree ("stored_by") WHERE stored_by is not null;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "bookmarks_stored_by" ON "bookmarks" USING btree ("stored_by") WHERE stored_by is not null;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "cache_entries_stored_by" ON "cache_entries" USING btree ("stored_by") WHERE stored_by is not null;--> statement-breakpoint
CREATE INDEX CONCURRENTLY "table_views_stored_by" ON "table_views" USING btree ("stored_by") WHERE stored_by is not null;--> statement-breakpoint
-- Whoever adds or removes what counts for a user, its bytes are written down in the same transaction. Programs have no right to
-- write them: the triggers act with the rights of the tables' owner.
CREATE FUNCTION "change_storage"("who" text, "more" bigint, "at" timestamp with time zone) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF "who" IS NOT NULL AND "more" <> 0 THEN
		INSERT INTO "public"."storage_changes" ("owner", "bytes", "due") VALUES ("who", "more", "at");
	END IF;
END $$;--> statement-breakpoint
CREATE FUNCTION "count_stored"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
	IF TG_OP <> 'INSERT' THEN PERFORM "change_storage"(OLD."stored_by", -OLD."size", now()); END IF;
	IF TG_OP <> 'DELETE' THEN PERFORM "change_storage"(NEW."stored_by", NEW."size", now()); END IF;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "artifacts_stored" AFTER INSERT OR DELETE OR UPDATE OF "size", "stored_by" ON "artifacts"
	FOR EACH ROW EXECUTE FUNCTION "count_stored"();--> statement-breakpoint
CREATE TRIGGER "bookmarks_stored" AFTER INSERT OR DELETE OR UPDATE OF "size", "stored_by" ON "bookmarks"
	FOR EACH ROW EXECUTE FUNCTION "count_stored"();--> statement-breakpoint
CREATE TRIGGER "cache_entries_stored" AFTER INSERT OR DELETE OR UPDATE OF "size", "stored_by" ON "cache_entries"
	FOR EACH ROW EXECUTE FUNCTION "count_stored"();--> statement-breakpoint
CREATE TRIGGER "table_views_stored" AFTER INSERT OR DELETE OR UPDATE OF "size", "stored_by" ON "table_views"
	FOR EACH ROW EXECUTE FUNCTION "count_stored"();--> statement-breakpoint
CREATE FUNCTION "count_uploaded"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
	PERFORM "change_storage"(OLD."owner", -OLD."bytes", now());
	IF TG_OP = 'UPDATE' THEN PERFORM "change_storage"(NEW."owner", NEW."bytes", now()); END IF;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "uploads_stored" AFTER DELETE OR UPDATE OF "bytes", "owner" ON "uploads"
	FOR EACH ROW EXECUTE FUNCTION "count_uploaded"();--> statement-breakpoint
-- A video is removed 25 hours after its job, whoever asks for it meanwhile.
CREATE FUNCTION "change_video"("who" text, "sign" integer, "result" jsonb, "finished" timestamp with time zone)
	RETURNS void LANGUAGE sql AS $$
	SELECT "public"."change_storage"("who", "sign" * ("result" ->> 'bytes')::bigint, now()),
		"public"."change_storage"("who", -"sign" * ("result" ->> 'bytes')::bigint, "finished" + interval '25 hours')
	WHERE "result" ->> 'object' IS NOT NULL AND "finished" > now() - interval '25 hours';
$$;--> statement-breakpoint
CREATE FUNCTION "count_output"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
	"had" bigint := OLD."stdout_bytes" + OLD."stderr_bytes";
BEGIN
	IF TG_OP = 'UPDATE' AND NEW."owner" = OLD."owner" THEN
		PERFORM "change_storage"(NEW."owner", NEW."stdout_bytes" + NEW."stderr_bytes" - "had", now());
		IF OLD."kind" = 'video' AND OLD."result" IS NULL THEN
			PERFORM "change_video"(NEW."owner", 1, NEW."result", NEW."finished");
		END IF;
		RETURN NULL;
	END IF;
	PERFORM "change_storage"(OLD."owner", -"had", now());
	IF OLD."kind" = 'video' THEN PERFORM "change_video"(OLD."owner", -1, OLD."result", OLD."finished"); END IF;
	IF TG_OP = 'UPDATE' THEN
		PERFORM "change_storage"(NEW."owner", NEW."stdout_bytes" + NEW."stderr_bytes", now());
		IF OLD."kind" = 'video' THEN PERFORM "change_video"(NEW."owner", 1, NEW."result", NEW."finished"); END IF;
	END IF;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "jobs_stored" AFTER UPDATE OF "stdout_bytes", "stderr_bytes", "result", "owner" ON "jobs" FOR EACH ROW
	WHEN (OLD."stdout_bytes" <> NEW."stdout_bytes" OR OLD."stderr_bytes" <> NEW."stderr_bytes"
		OR OLD."owner" <> NEW."owner" OR OLD."kind" = 'video' AND OLD."result" IS DISTINCT FROM NEW."result")
	EXECUTE FUNCTION "count_output"();--> statement-breakpoint
CREATE TRIGGER "jobs_stored_no_more" AFTER DELETE ON "jobs" FOR EACH ROW
	WHEN (OLD."stdout_bytes" > 0 OR OLD."stderr_bytes" > 0 OR OLD."kind" = 'video') EXECUTE FUNCTION "count_output"();

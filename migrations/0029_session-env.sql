ALTER TABLE "sessions" ADD COLUMN "sealed_env" "bytea";--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "env_names" text[];--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "startup" text DEFAULT 'once' NOT NULL;--> statement-breakpoint
-- The release before erases the credential of an ended session, and does not know that anything else was sealed with it.
CREATE FUNCTION "erase_session_env"() RETURNS trigger LANGUAGE plpgsql
	SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
	NEW.sealed_env := NULL;
	RETURN NEW;
END $$;--> statement-breakpoint
CREATE TRIGGER "sessions_env" BEFORE UPDATE OF "sealed" ON "sessions"
	FOR EACH ROW WHEN (NEW.sealed IS NULL AND NEW.sealed_env IS NOT NULL) EXECUTE FUNCTION "erase_session_env"();

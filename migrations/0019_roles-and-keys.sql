ALTER TABLE "workers" ADD COLUMN "seal_keys" text[];--> statement-breakpoint
-- The API changes hosts, and its role reads no sealed credential: the trigger acts with the rights of the tables' owner.
CREATE OR REPLACE FUNCTION "end_sessions_of_host"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
	IF TG_OP = 'UPDATE' AND (OLD.name, OLD.address, OLD.port) = (NEW.name, NEW.address, NEW.port)
		AND OLD.keys @> NEW.keys AND NEW.keys @> OLD.keys THEN
		RETURN NULL;
	END IF;
	UPDATE "sessions" SET "sealed" = NULL, "ended" = coalesce("ended", now()),
		"end_reason" = CASE WHEN "ended" IS NULL THEN 'host_changed' ELSE "end_reason" END
	WHERE "hostname" = OLD.name AND "sealed" IS NOT NULL;
	RETURN NULL;
END $$;--> statement-breakpoint
-- What a login needs: the API's role cannot read the column. shared/database/rights.ts says who may call it.
CREATE FUNCTION "password_hash_of"("name" text) RETURNS text LANGUAGE sql STABLE
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
	RETURN (SELECT "users"."password_hash" FROM "public"."users" WHERE "users"."username" = "name");

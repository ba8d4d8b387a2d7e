ALTER TABLE "hosts" ADD COLUMN "jump" text;--> statement-breakpoint
ALTER TABLE "hosts" ADD CONSTRAINT "hosts_jump_hosts_name_fk" FOREIGN KEY ("jump") REFERENCES "public"."hosts"("name") ON DELETE no action ON UPDATE no action NOT VALID;--> statement-breakpoint
ALTER TABLE "hosts" VALIDATE CONSTRAINT "hosts_jump_hosts_name_fk";--> statement-breakpoint
-- A place is that of every machine on the way: the sessions of all hosts behind the changed one end.
CREATE OR REPLACE FUNCTION "end_sessions_of_host"() RETURNS trigger LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
	IF TG_OP = 'UPDATE' AND (OLD.name, OLD.address, OLD.port) = (NEW.name, NEW.address, NEW.port)
		AND OLD.jump IS NOT DISTINCT FROM NEW.jump AND OLD.keys @> NEW.keys AND NEW.keys @> OLD.keys THEN
		RETURN NULL;
	END IF;
	UPDATE "sessions" SET "sealed" = NULL, "ended" = coalesce("ended", now()),
		"end_reason" = CASE WHEN "ended" IS NULL THEN 'host_changed' ELSE "end_reason" END
	WHERE "sealed" IS NOT NULL AND "hostname" IN (
		WITH RECURSIVE behind("name") AS (
			SELECT OLD.name
			UNION SELECT "hosts"."name" FROM "hosts" JOIN behind ON "hosts"."jump" = behind."name"
		) SELECT "name" FROM behind);
	RETURN NULL;
END $$;

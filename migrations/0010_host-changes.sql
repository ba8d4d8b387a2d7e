ALTER TABLE "hosts" ADD COLUMN "users" text[];--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "end_reason" text;--> statement-breakpoint
CREATE FUNCTION "end_sessions_of_host"() RETURNS trigger LANGUAGE plpgsql AS $$
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
-- Whoever changes a host's entry, and with whatever program: the credentials of its sessions belong to the place that it was.
CREATE TRIGGER "hosts_end_sessions" AFTER UPDATE OR DELETE ON "hosts" FOR EACH ROW EXECUTE FUNCTION "end_sessions_of_host"();

CREATE INDEX CONCURRENTLY "uploads_of_owner" ON "uploads" USING btree ("owner","uid");--> statement-breakpoint
DROP INDEX CONCURRENTLY "uploads_owner";
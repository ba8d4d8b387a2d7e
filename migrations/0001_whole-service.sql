CREATE TABLE "failed_logins" (
	"key" text PRIMARY KEY NOT NULL,
	"failures" integer NOT NULL,
	"began" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "logins" (
	"token" text PRIMARY KEY NOT NULL,
	"username" text NOT NULL,
	"user_version" integer NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tokens" (
	"id" text PRIMARY KEY NOT NULL,
	"hash" text NOT NULL,
	"username" text NOT NULL,
	"name" text NOT NULL,
	"scope" text NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"expires" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "artifacts" (
	"model" text NOT NULL,
	"aid" text NOT NULL,
	"kind" text NOT NULL,
	"input" boolean DEFAULT false NOT NULL,
	"size" bigint DEFAULT 0 NOT NULL,
	"value" text,
	"object" text,
	"rows" bigint,
	"columns" jsonb,
	"version" integer DEFAULT 1 NOT NULL,
	"updated" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "artifacts_model_aid_pk" PRIMARY KEY("model","aid"),
	CONSTRAINT "artifacts_value" CHECK (value is null or value is json)
);
--> statement-breakpoint
CREATE TABLE "bookmarks" (
	"bid" text PRIMARY KEY NOT NULL,
	"project" text NOT NULL,
	"hash" text NOT NULL,
	"content" text NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "bookmarks_content_json" CHECK (content is json object)
);
--> statement-breakpoint
CREATE TABLE "cache_entries" (
	"project" text NOT NULL,
	"key" text NOT NULL,
	"object" text NOT NULL,
	"type" text NOT NULL,
	"size" bigint DEFAULT 0 NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "cache_entries_project_key_pk" PRIMARY KEY("project","key")
);
--> statement-breakpoint
CREATE TABLE "project_members" (
	"project" text NOT NULL,
	"username" text NOT NULL,
	"role" text NOT NULL,
	CONSTRAINT "project_members_project_username_pk" PRIMARY KEY("project","username")
);
--> statement-breakpoint
CREATE TABLE "models" (
	"mid" text PRIMARY KEY NOT NULL,
	"project" text NOT NULL,
	"type" text NOT NULL,
	"name" text NOT NULL,
	"description" text DEFAULT '' NOT NULL,
	"marking" text DEFAULT '' NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"updated" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "project_bytes" (
	"project" text PRIMARY KEY NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "projects" (
	"pid" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"description" text DEFAULT '' NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"updated" timestamp with time zone DEFAULT now() NOT NULL,
	"deleted" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "loose_objects" (
	"object" text PRIMARY KEY NOT NULL,
	"since" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "upload_parts" (
	"upload" text NOT NULL,
	"file" integer NOT NULL,
	"part" integer NOT NULL,
	"size" bigint NOT NULL,
	"digest" text NOT NULL,
	"object" text NOT NULL,
	"stored" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "upload_parts_upload_file_part_pk" PRIMARY KEY("upload","file","part")
);
--> statement-breakpoint
CREATE TABLE "uploads" (
	"uid" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL,
	"model" text NOT NULL,
	"parser" text NOT NULL,
	"parameters" jsonb NOT NULL,
	"aids" text[] NOT NULL,
	"input" boolean NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"job" text,
	"created" timestamp with time zone DEFAULT now() NOT NULL,
	"accessed" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "table_views" (
	"id" text PRIMARY KEY NOT NULL,
	"source" text NOT NULL,
	"job" text NOT NULL,
	"object" text,
	"size" bigint DEFAULT 0 NOT NULL,
	"rows" bigint,
	"used" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "project" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "model" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "upload" text;--> statement-breakpoint
ALTER TABLE "jobs" ADD COLUMN "request_id" text;--> statement-breakpoint
ALTER TABLE "workers" ADD COLUMN "metrics" jsonb;--> statement-breakpoint
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_model_models_mid_fk" FOREIGN KEY ("model") REFERENCES "public"."models"("mid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "bookmarks" ADD CONSTRAINT "bookmarks_project_projects_pid_fk" FOREIGN KEY ("project") REFERENCES "public"."projects"("pid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "cache_entries" ADD CONSTRAINT "cache_entries_project_projects_pid_fk" FOREIGN KEY ("project") REFERENCES "public"."projects"("pid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_project_projects_pid_fk" FOREIGN KEY ("project") REFERENCES "public"."projects"("pid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "models" ADD CONSTRAINT "models_project_projects_pid_fk" FOREIGN KEY ("project") REFERENCES "public"."projects"("pid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_bytes" ADD CONSTRAINT "project_bytes_project_projects_pid_fk" FOREIGN KEY ("project") REFERENCES "public"."projects"("pid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upload_parts" ADD CONSTRAINT "upload_parts_upload_uploads_uid_fk" FOREIGN KEY ("upload") REFERENCES "public"."uploads"("uid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "uploads" ADD CONSTRAINT "uploads_model_models_mid_fk" FOREIGN KEY ("model") REFERENCES "public"."models"("mid") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "logins_username" ON "logins" USING btree ("username");--> statement-breakpoint
CREATE INDEX "logins_expires" ON "logins" USING btree ("expires");--> statement-breakpoint
CREATE UNIQUE INDEX "tokens_hash" ON "tokens" USING btree ("hash");--> statement-breakpoint
CREATE INDEX "tokens_username" ON "tokens" USING btree ("username","id");--> statement-breakpoint
CREATE INDEX "artifacts_object" ON "artifacts" USING btree ("object") WHERE object is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "bookmarks_content" ON "bookmarks" USING btree ("project","hash");--> statement-breakpoint
CREATE INDEX "cache_entries_object" ON "cache_entries" USING btree ("object");--> statement-breakpoint
CREATE INDEX "project_members_username" ON "project_members" USING btree ("username","project");--> statement-breakpoint
CREATE INDEX "models_project" ON "models" USING btree ("project","mid");--> statement-breakpoint
CREATE INDEX "upload_parts_object" ON "upload_parts" USING btree ("object");--> statement-breakpoint
CREATE INDEX "uploads_owner" ON "uploads" USING btree ("owner");--> statement-breakpoint
CREATE INDEX "uploads_model" ON "uploads" USING btree ("model");--> statement-breakpoint
CREATE INDEX "uploads_job" ON "uploads" USING btree ("job");--> statement-breakpoint
CREATE INDEX "uploads_accessed" ON "uploads" USING btree ("accessed");--> statement-breakpoint
CREATE INDEX "table_views_source" ON "table_views" USING btree ("source");--> statement-breakpoint
CREATE INDEX "table_views_used" ON "table_views" USING btree ("used");--> statement-breakpoint
CREATE INDEX "table_views_object" ON "table_views" USING btree ("object") WHERE object is not null;--> statement-breakpoint
CREATE INDEX "jobs_on_the_way" ON "jobs" USING btree ("queue") WHERE finished is null and attempt is null and dispatched is not null;--> statement-breakpoint
CREATE INDEX "jobs_open_project" ON "jobs" USING btree ("project") WHERE finished is null and project is not null;--> statement-breakpoint
CREATE INDEX "jobs_open_model" ON "jobs" USING btree ("model") WHERE finished is null and model is not null;--> statement-breakpoint
CREATE INDEX "jobs_open_upload" ON "jobs" USING btree ("upload") WHERE finished is null and upload is not null;--> statement-breakpoint
CREATE INDEX "jobs_passed_on" ON "jobs" USING btree ("finished") WHERE kind in ('browse', 'file') and stdout_bytes > 0;
ALTER TABLE "jobs" RENAME COLUMN "attempt" TO "lease_token";--> statement-breakpoint
ALTER TABLE "jobs" RENAME COLUMN "lease" TO "lease_expires";--> statement-breakpoint
ALTER TABLE "jobs" RENAME COLUMN "setbacks" TO "consecutive_losses";--> statement-breakpoint
ALTER TABLE "jobs" RENAME COLUMN "run_boot" TO "run_place";--> statement-breakpoint
ALTER TABLE "jobs" RENAME COLUMN "run_forgotten" TO "run_removed";--> statement-breakpoint
ALTER INDEX "jobs_on_the_way" RENAME TO "jobs_dispatched";--> statement-breakpoint
ALTER INDEX "jobs_passed_on" RENAME TO "jobs_streamed_output";--> statement-breakpoint
ALTER INDEX "jobs_unforgotten" RENAME TO "jobs_unremoved_runs";--> statement-breakpoint
ALTER TABLE "loose_objects" RENAME TO "pending_deletions";--> statement-breakpoint
ALTER TABLE "pending_deletions" RENAME COLUMN "since" TO "due";--> statement-breakpoint
ALTER INDEX "loose_objects_pkey" RENAME TO "pending_deletions_pkey";

import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, members, models, projects, uploads } from '../../shared/database/schema.ts';
import type { JobState } from '../../shared/jobs/job-states.ts';

/** Nothing of what a parse failed with, which may be long. */
const { uid, model, parser, input, job, created, accessed } = uploads;
const columns = { uid, model, parser, input, job, created, accessed };
/** The state of the parse, or of what stays of it. */
const state = sql<JobState | null>`coalesce(${jobs.state}, ${uploads.parseEnd} ->> 'state')`;

/** What a list shows of the user's uploads into projects of which they are members. */
export function selectUploadsOf(db: Tx, owner: string) {
  const mine = db
    .select({ project: members.project })
    .from(members)
    .innerJoin(projects, and(eq(projects.pid, members.project), isNull(projects.deleted)))
    .where(eq(members.username, owner));
  return db
    .select({ upload: columns, state })
    .from(uploads)
    .innerJoin(
      models,
      and(eq(models.mid, uploads.model), eq(uploads.owner, owner), inArray(models.project, mine)),
    )
    .leftJoin(jobs, eq(jobs.id, uploads.job));
}

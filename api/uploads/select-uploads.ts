import { and, eq, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, members, models, projects, uploads } from '../../shared/database/schema.ts';
import type { JobState } from '../../shared/jobs/job-states.ts';

/** Nothing of what a parse failed with, which may be long. */
const { uid, model, parser, input, job, created, accessed } = uploads;
const columns = { uid, model, parser, input, job, created, accessed };
/** The state of the parse, or of what stays of it. */
const state = sql<JobState | null>`coalesce(${jobs.state}, ${uploads.parseEnd} ->> 'state')`;

/**
 * What a list shows of the user's uploads into projects of which they are members. Each is looked at by itself, as `offset 0`
 * has it, in the order of the index: a join would read all of them, and all models of these projects, for every page.
 */
export function selectUploadsOf(db: Tx, owner: string) {
  const membership = sql`select from ${models}
    join ${projects} on ${projects.pid} = ${models.project} and ${projects.deleted} is null
    join ${members} on ${members.project} = ${models.project} and ${members.username} = ${owner}
    where ${models.mid} = ${uploads.model} offset 0`;
  return {
    rows: db
      .select({ upload: columns, state })
      .from(uploads)
      .leftJoin(jobs, eq(jobs.id, uploads.job)),
    where: and(eq(uploads.owner, owner), sql`exists (${membership})`),
  };
}

import { sql } from 'drizzle-orm';
import { type JobRow, jobs } from '../database/schema.ts';
import { findDefinition } from './catalog.ts';

/**
 * What a job's row says of its effect on a host. Each kind of effect uses these columns in its own way; only this file writes
 * and reads the differences. For all kinds `runAt` says that the host may have been asked.
 */
type Intent = Pick<JobRow, 'runAt' | 'runPlace' | 'runRemoved'>;

/** The agent is about to be asked for a run, on this boot and with this folder of fences. */
export const runSent = (place: string) => ({ runAt: new Date(), runPlace: place });

/** A directory for a batch job is about to be made. */
export const submissionIntended = () => ({ runAt: new Date() });

/** The directory is made, and may be submitted: with the time, so that the commit waits for the disk. */
export const submissionMade = (directory: string) => ({ runAt: new Date(), runPlace: directory });

/** A command without an agent, or a change of a file, is about to begin: the host keeps nothing that must be removed. */
export const effectIntended = () => ({ runAt: new Date(), runRemoved: true });

/** The host was not asked after all. */
export const intentWithdrawn = { runAt: null, runRemoved: false };

/** For a repeat: since when the abandoned job of the same request may have had the effect; undefined where it had none. */
export const effectRepeated = (since: Date | undefined) => ({
  runAt: since,
  runRemoved: since !== undefined,
});

/** Marks a run whose end a failover of the database lost as removed from its host, so that nobody requests it. */
export const runEndLost = ({ runAt, runPlace }: Intent): Intent => ({
  runAt,
  runPlace,
  runRemoved: true,
});

/** Nothing is left on the host. */
export const nothingLeft = { runRemoved: true };

/** Whether these changes must survive a crash of the database. */
export const changesIntent = (set: object): boolean => 'runAt' in set;

/** Whether the run, or the submission, may be on its host, running or ended. */
export const mayRunOnHost = ({ kind, ...intent }: Intent & Pick<JobRow, 'kind'>): boolean =>
  mayBeLeft(intent) && (intent.runPlace !== null || findDefinition(kind)?.leaves !== 'submission');

/** Whether files may be on the host that are to be removed after the job's end. */
export const mayBeLeft = ({ runAt, runRemoved }: Pick<Intent, 'runAt' | 'runRemoved'>): boolean =>
  runAt !== null && !runRemoved;

/**
 * Like mayBeLeft(), for statements that name other tables too. Worded as LEAVES_UNREMOVED: a parameter would hide its index.
 */
export const rowLeavesUnremoved = sql`${jobs.runAt} is not null and not ${jobs.runRemoved}`;

/** Whether the run was requested on another boot of the host, or with another folder of fences. */
export const wasSentElsewhere = ({ runAt, runPlace }: Intent, place: string): boolean =>
  runAt !== null && runPlace !== place;

/** Whether the run may have been requested with this folder of fences; the boot is of no matter, as a reboot ends runs. */
export function mayBeRunOf({ runPlace }: Pick<Intent, 'runPlace'>, fences: string): boolean {
  // Old releases did not note it.
  const [, noted] = runPlace?.split(' ') ?? [];
  return noted === undefined || noted === fences;
}

/** What cannot be known of a command: how it went on without an agent, or the end that a failover lost. */
export function whatWasLost(row: Intent): 'plain exec' | 'end' | undefined {
  if (row.runAt === null || !row.runRemoved) return undefined;
  return row.runPlace === null ? 'plain exec' : 'end';
}

/** Whether a command began without an agent. */
export const isPlainExec = (row: Intent): boolean => whatWasLost(row) === 'plain exec';

/** The directory of a batch job's present submission, from its row; or the column. */
export const submissionDirectory = <T>({ runPlace }: { runPlace: T }): T => runPlace;

/** Whether the job itself set `runAt`: a repeat has the time of the request before it. */
export const isOwnIntent = ({ runAt, created }: Pick<JobRow, 'runAt' | 'created'>): boolean =>
  runAt !== null && runAt >= created;

import { z } from 'zod';
import { ARTIFACT_KINDS } from '../uploads/parsers.ts';
import { absolutePath } from './payloads/absolute-path.ts';
import { batchPayload, batchRules, batchVersion } from './payloads/batch.ts';
import { commandPayload, commandText, commandVersion, launchOptions } from './payloads/launch.ts';
import { loginResult } from './payloads/login.ts';
import { tableFilter, tableGroups } from './payloads/table-query.ts';
import { videoPayload, videoResult, videoRules, videoVersion } from './payloads/video.ts';

/** Queues, each with slots of its own: `interactive` is for kinds that answer a client who waits. */
export const QUEUES = ['remote', 'interactive', 'video', 'parse'] as const;
export type QueueName = (typeof QUEUES)[number];
/**
 * What a worker program can be started with, and the queues that it serves then. `upkeep` serves none: it dispatches to
 * all, reclaims leases and does the periodic work.
 */
export const QUEUES_OF = {
  remote: ['remote', 'interactive'],
  video: ['video'],
  parse: ['parse'],
  upkeep: [],
} as const satisfies Record<string, readonly QueueName[]>;
export type WorkerType = keyof typeof QUEUES_OF;
export const WORKER_TYPES = Object.keys(QUEUES_OF) as WorkerType[];

/** The one definition of a kind of job, from which every list and special treatment of kinds is derived. */
interface Definition {
  /** What such a job does, for clients. */
  means: string;
  queue: QueueName;
  /**
   * As it is stored: shapes alone. A stored payload was accepted by the rules of its day, and is read as long as its row
   * exists, so a shape may be widened and never narrowed.
   */
  payload: z.ZodObject;
  /** Rules for what is sent today, by members of the payload: see requestSchema(). They may change with any release. */
  rules?: Record<string, z.ZodType>;
  /**
   * The version of the payload; 1 unless given. Raise it with a member that a worker must not ignore, and with a form of one
   * that older workers refuse or misread. A job waits for a worker that supports its version.
   */
  version?: number;
  /** The lowest version that a payload needs, so that workers of the previous release do most jobs of the kind, too. */
  versionOf?(payload: unknown): number;
  result: z.ZodObject;
  /**
   * The job needs a session: it `uses` the session's connection, so it goes to the worker that has one, or `opens` the
   * first. The workers of its queue open credentials.
   */
  session?: 'uses' | 'opens';
  /** The row, besides a session, that the job belongs to: deleting the row cancels the job. */
  parent?: 'project' | 'model' | 'upload';
  /** Bytes that it writes to stdout and stderr: kept, or streamed to the client that waits and removed after an hour. */
  output?: 'kept' | 'streamed';
  /** The prefix of the objects that it stores: see object-keys.ts. */
  objects?: string;
  /** The job is cancelled when the client that waits for it disconnects. */
  endsWithClient?: boolean;
  /** It changes a file of the host. After its end others may change that file, so the job is never done again. */
  changesFile?: boolean;
  /** Its handler says whether it runs: a claimed job may wait elsewhere, such as a batch job. */
  ownState?: boolean;
  /** What the job leaves on the host, to be removed after its end: a run of the agent, or submissions to a batch system. */
  leaves?: 'run' | 'submission';
  /**
   * Its run is the user's own work: it is never repeated, and after `outcome_unknown` may keep running, as the user was told.
   */
  runsOnce?: boolean;
  /** It may wait for long, in a batch system, for its host or for room on the disk: a cancel makes it due at once. */
  waits?: boolean;
  /**
   * While its host is unreachable it keeps its slot: it would lose what it has encoded, and videos of other hosts do not queue
   * for few slots as commands do.
   */
  keepsSlotWhenUnreachable?: boolean;
  /** A client may ask for the same work again by POST /jobs/(id)/retry. */
  retry?: boolean;
}

/** The address of who asked for it, for the audit. */
const clientAddress = z.string().nullish();
/** Entity tags in quotes, or `*`: a file of another state stays as it is. */
const ifMatch = z.array(z.string()).optional();

/** Every kind of job. The handler of a kind is workers/handlers/(kind).ts, typed from its entry here. */
export const JOBS = {
  connect: {
    means: 'Logs in to the host and opens the session, up to what the host asks its user.',
    queue: 'interactive',
    session: 'opens',
    version: 5,
    payload: z.object({ address: clientAddress }),
    result: loginResult,
    endsWithClient: true,
  },
  answer: {
    means: 'Goes on with a login, by what the user has answered.',
    queue: 'interactive',
    session: 'opens',
    version: 4,
    payload: z.object({ challenge: z.string(), address: clientAddress }),
    result: loginResult,
    endsWithClient: true,
  },
  'scan-host': {
    means: 'Connects to a new host without logging in, to learn its keys.',
    queue: 'interactive',
    payload: z.object({ address: z.string(), port: z.number().int(), private: z.boolean() }),
    result: z.object({ keys: z.array(z.string()) }),
    endsWithClient: true,
  },
  command: {
    means: 'Runs a command on the host.',
    queue: 'remote',
    session: 'uses',
    output: 'kept',
    version: 4,
    versionOf: commandVersion,
    payload: commandPayload,
    rules: { command: commandText, ...launchOptions },
    result: z.object({ returncode: z.number().int() }),
    leaves: 'run',
    runsOnce: true,
    waits: true,
    retry: true,
  },
  batch: {
    means: "Submits a job to the host's batch system, and follows it.",
    queue: 'remote',
    session: 'uses',
    output: 'kept',
    version: 3,
    versionOf: batchVersion,
    payload: batchPayload,
    rules: batchRules,
    result: z.object({ returncode: z.number().int() }),
    ownState: true,
    leaves: 'submission',
    waits: true,
    retry: true,
  },
  video: {
    means: 'Makes a video of frames on the host.',
    queue: 'video',
    version: 5,
    versionOf: videoVersion,
    session: 'uses',
    parent: 'project',
    objects: 'videos',
    payload: videoPayload,
    rules: videoRules,
    result: videoResult,
    leaves: 'run',
    keepsSlotWhenUnreachable: true,
    retry: true,
  },
  browse: {
    means: 'Lists a directory on the host.',
    queue: 'interactive',
    session: 'uses',
    /** For each group of entries four lines of JSON, one a column. */
    output: 'streamed',
    version: 2,
    payload: z.object({ path: z.string() }),
    rules: { path: absolutePath },
    result: z.object({ entries: z.number().int() }),
    endsWithClient: true,
  },
  file: {
    means: 'Reads a file on the host, or a range of it.',
    queue: 'interactive',
    session: 'uses',
    /** One line of JSON about the file, then its bytes. */
    output: 'streamed',
    version: 2,
    rules: { path: absolutePath },
    payload: z.object({
      path: z.string(),
      /** No bytes, only what is said of the file. */
      headOnly: z.boolean(),
      /** As RFC 9110, 14.1.2 has it: from `first` to `last`, both included, or the `suffix` last bytes. */
      range: z
        .object({
          first: z.number().int().optional(),
          last: z.number().int().optional(),
          suffix: z.number().int().optional(),
        })
        .optional(),
      /** The tag of the state that the range is meant for; in another state all is read. */
      ifRange: z.string().optional(),
    }),
    result: z.object({ bytes: z.number().int() }),
    endsWithClient: true,
  },
  'write-file': {
    means: 'Writes a file on the host.',
    queue: 'remote',
    session: 'uses',
    objects: 'files',
    version: 4,
    rules: { path: absolutePath },
    payload: z.object({
      path: z.string(),
      /** The bytes, which the request has stored. */
      object: z.string(),
      size: z.number().int(),
      digest: z.string(),
      /** POSIX permission bits. */
      mode: z.number().int().optional(),
      /** Makes the folders that are missing. */
      parents: z.boolean(),
      /** Refuses a file that is there. */
      exclusive: z.boolean(),
      ifMatch,
    }),
    result: z.object({ created: z.boolean() }),
    endsWithClient: true,
    changesFile: true,
  },
  'remove-file': {
    means: 'Removes a file on the host.',
    queue: 'interactive',
    session: 'uses',
    version: 4,
    payload: z.object({ path: z.string(), ifMatch }),
    rules: { path: absolutePath },
    result: z.object({}),
    endsWithClient: true,
    changesFile: true,
  },
  copy: {
    means: 'Copies a file on the host into a part of an upload.',
    queue: 'remote',
    session: 'uses',
    parent: 'upload',
    objects: 'uploads',
    version: 2,
    payload: z.object({
      upload: z.string(),
      file: z.number().int(),
      part: z.number().int(),
      path: z.string(),
    }),
    rules: { path: absolutePath },
    result: z.object({ size: z.number().int(), digest: z.string() }),
  },
  parse: {
    means: 'Parses a finished upload into artifacts of its model.',
    queue: 'parse',
    parent: 'upload',
    objects: 'artifacts',
    version: 3,
    retry: true,
    payload: z.object({ upload: z.string() }),
    result: z.object({
      /** The first 1,000 artifacts. */
      artifacts: z.array(
        z
          .object({ aid: z.string(), kind: z.enum(ARTIFACT_KINDS), size: z.number().int() })
          .meta({ id: 'ParsedArtifact' }),
      ),
      /** The number of all artifacts. */
      count: z.number().int(),
      /** What was sent. */
      files: z.array(
        z
          .object({
            size: z.number().int(),
            parts: z
              .object({
                // No tuple: openapi-python-client cannot read one.
                sizes: z
                  .array(z.array(z.number().int()).length(2))
                  .describe('[bytes, parts]: so many parts of so many bytes follow one another.'),
                digest: z.string().describe("SHA-256 of the parts' SHA-256s, in base64."),
              })
              .meta({ id: 'SentParts' })
              .optional(),
          })
          .meta({ id: 'SentFile' }),
      ),
    }),
  },
  view: {
    means: 'Sorts, filters or groups a table into a view of it.',
    queue: 'parse',
    parent: 'model',
    objects: 'views',
    version: 2,
    payload: z.object({
      view: z.string(),
      source: z.string(),
      sort: z.array(z.object({ column: z.string(), descending: z.boolean() })),
      filter: z.array(tableFilter),
      groups: tableGroups.optional(),
    }),
    result: z.object({ object: z.string(), size: z.number().int(), rows: z.number().int() }),
  },
} as const satisfies Record<string, Definition>;

export type JobKind = keyof typeof JOBS;
export type Payload<K extends JobKind> = z.output<(typeof JOBS)[K]['payload']>;
export type Result<K extends JobKind> = z.output<(typeof JOBS)[K]['result']>;

/** Kinds whose entries have these members. */
type KindsWith<Members> = {
  [K in JobKind]: (typeof JOBS)[K] extends Members ? K : never;
}[JobKind];
/** Kinds that use a session, or open one. */
export type KindWithSession = KindsWith<{ session: 'uses' | 'opens' }>;
/** Kinds that need an open session and nothing else. */
export type SessionKind = KindsWith<{ session: 'uses'; parent?: never }>;
/** Kinds with a session whose output is streamed to the client. */
export type StreamedKind = SessionKind & KindsWith<{ output: 'streamed' }>;
/** Kinds that are cancelled when the client that waits for them disconnects. */
export type AwaitedKind = KindsWith<{ endsWithClient: true }>;

export const JOB_KINDS = Object.keys(JOBS) as JobKind[];

const kindsThat = (has: (definition: Definition) => boolean | undefined): JobKind[] =>
  JOB_KINDS.filter(kind => has(jobDefinition(kind)));

export const KINDS_WITH_OWN_STATE = kindsThat(({ ownState }) => ownState);
export const KINDS_WITH_SUBMISSIONS = kindsThat(({ leaves }) => leaves === 'submission');
export const KINDS_THAT_RUN_ONCE = kindsThat(({ runsOnce }) => runsOnce);
export const KINDS_THAT_WAIT = kindsThat(({ waits }) => waits);

export function isJobKind(kind: string): kind is JobKind {
  return Object.hasOwn(JOBS, kind);
}

export function isAwaitedKind(kind: JobKind): kind is AwaitedKind {
  return jobDefinition(kind).endsWithClient === true;
}

/** The entry of a kind, with the optional members of all entries. */
export function jobDefinition(kind: JobKind): Definition {
  return JOBS[kind];
}

/** The entry of a row's kind; undefined where a newer release has written the row. */
export function findDefinition(kind: string): Definition | undefined {
  return isJobKind(kind) ? jobDefinition(kind) : undefined;
}

const REQUEST_SCHEMAS = new Map(
  JOB_KINDS.map(kind => {
    const { payload, rules = {} } = jobDefinition(kind);
    return [kind, payload.extend(rules)];
  }),
);

/** The shape of a new payload, with the rules of today. */
export function requestSchema(kind: JobKind): z.ZodObject {
  return REQUEST_SCHEMAS.get(kind) ?? jobDefinition(kind).payload;
}

/** Whether such workers open the credentials of sessions. */
export const opensCredentials = (type: WorkerType) =>
  JOB_KINDS.some(kind => jobDefinition(kind).session && workerTypeOf(kind) === type);

/** The workers that do such jobs. */
export function workerTypeOf(kind: JobKind): WorkerType {
  const { queue } = JOBS[kind];
  const found = WORKER_TYPES.find(type =>
    (QUEUES_OF[type] as readonly QueueName[]).includes(queue),
  );
  if (!found) throw new Error(`no workers serve the queue ${queue}`);
  return found;
}

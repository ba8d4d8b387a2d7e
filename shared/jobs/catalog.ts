import { z } from 'zod';
import { ARTIFACT_KINDS } from '../uploads/parsers.ts';
import { batchRequest } from './batch.ts';

/** Queues, each with slots of its own: `interactive` is for kinds that answer a client who waits. */
export const QUEUES = ['remote', 'interactive', 'video', 'parse'] as const;
export type QueueName = (typeof QUEUES)[number];
/** What a worker program can be started with, and the queues that it serves then: `upkeep` is work of no queue. */
export const QUEUES_OF = {
  remote: ['remote', 'interactive'],
  video: ['video'],
  parse: ['parse'],
  upkeep: [],
} as const satisfies Record<string, readonly QueueName[]>;
export type Work = keyof typeof QUEUES_OF;
export const WORK = Object.keys(QUEUES_OF) as Work[];

/** All there is to say of a kind of job: every list of kinds, and what treats some of them specially, is derived from it. */
interface Definition {
  /** What such a job does, for clients. */
  means: string;
  queue: QueueName;
  payload: z.ZodType;
  /**
   * Of the payload; 1 unless given. Raise it with a member that a worker must not ignore, and still take payloads of before.
   * A job waits for a worker that understands its version.
   */
  version?: number;
  /**
   * The same in a session that the release before would use wrongly: its host has a jump host, its commands have variables of the
   * session's own, or read the start-up files each. A kind with a session has it, until the release before knows all of these.
   */
  versionInNewerSessions?: number;
  result: z.ZodType;
  /**
   * The job needs a session: it `uses` the session's connection, so it goes to the worker that has one, or `opens` the
   * first. The workers of its queue open credentials.
   */
  session?: 'uses' | 'opens';
  /** The row below which it works besides: the job is cancelled when that is deleted. */
  parent?: 'project' | 'model' | 'upload';
  /** Bytes that it writes to stdout and stderr: kept, or streamed to the client that waits and removed after an hour. */
  output?: 'kept' | 'streamed';
  /** The prefix of the objects that it stores: see object-keys.ts. */
  objects?: string;
  /** The job is cancelled when the client that waits for it disconnects. */
  endsWithClient?: boolean;
  /** Its handler says whether it runs: a job that a worker has may be waiting elsewhere. */
  ownState?: boolean;
  /** A client may ask for the same work again by POST /jobs/(id)/retry. */
  retry?: boolean;
}

export const absolutePath = z
  .string()
  .max(4096)
  .regex(/^\//, 'must be an absolute path')
  .refine(path => !path.includes('\0'), 'must not hold a NUL character')
  .refine(path => !/\p{Surrogate}/u.test(path), 'must be well-formed Unicode');

/** Frames of one video, at most. */
export const MAX_FRAMES = 100_000;

/** One `%d`, perhaps with a width, or `*`; elsewhere they are not special. */
const framePattern = absolutePath.refine(
  path => (path.match(/%0?\d{0,2}d/g) ?? []).length === (path.includes('*') ? 0 : 1),
  'must hold one number, such as %05d, or *',
);
const position = z.number().int().min(0).max(1e15);

/** How the small pictures of a video lie in its sprite, row by row. */
const spriteTiles = z.object({
  count: z.number().int(),
  columns: z.number().int(),
  width: z.number().int(),
  height: z.number().int(),
  /** Seconds from one to the next, and of the whole video. */
  every: z.number(),
  duration: z.number(),
});
export type SpriteTiles = z.infer<typeof spriteTiles>;

/** A frame that was left out. */
export const skippedFrame = z
  .object({
    index: z.number().int().describe('From 0, in the list or in what the pattern matched.'),
    path: z.string(),
    reason: z.string(),
  })
  .meta({ id: 'SkippedFrame' });

/** The program's own words for one command line: execve's limit for one argument is 128 KiB. */
export const commandText = z
  .string()
  .min(1)
  .refine(text => !text.includes('\0'), 'must not hold a NUL character')
  .refine(text => Buffer.byteLength(text) <= 131_000, 'must be at most 131,000 bytes long')
  .refine(text => !/\p{Surrogate}/u.test(text), 'must be well-formed Unicode');

const VARIABLE_BYTES = 65_536;
export const INPUT_BYTES = 1_048_576;
const noNul = (text: string) => !text.includes('\0');
const wellFormed = (text: string) => !/\p{Surrogate}/u.test(text);

/** How a command is run, beside its text. */
export const launchOptions = {
  /** Relative to the account's home, where the path is relative. */
  cwd: z
    .string()
    .min(1)
    .max(4096)
    .refine(noNul, 'must not hold a NUL character')
    .refine(wellFormed, 'must be well-formed Unicode')
    .optional(),
  env: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a name of letters, digits and _'),
      z
        .string()
        .refine(noNul, 'must not hold a NUL character')
        .refine(wellFormed, 'must be well-formed Unicode'),
    )
    .refine(
      env =>
        Object.entries(env).reduce((sum, pair) => sum + Buffer.byteLength(pair.join('=')) + 1, 0) <=
        VARIABLE_BYTES,
      'must be at most 64 KiB long',
    )
    .optional(),
  stdin: z
    .string()
    .refine(noNul, 'must not hold a NUL character')
    .refine(wellFormed, 'must be well-formed Unicode')
    .refine(text => Buffer.byteLength(text) <= INPUT_BYTES, 'must be at most 1 MiB long')
    .optional(),
  /** Seconds, from its start. */
  timeout: z.number().positive().max(31_536_000).optional(),
};

/** One condition on a table's rows; `null` asks whether the value is missing ("true") or not ("false"). */
export const tableFilter = z.object({
  column: z.string(),
  op: z.enum(['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'null']),
  value: z.string(),
});
export type TableFilter = z.output<typeof tableFilter>;

/** The most groups of a view. */
export const MAX_GROUPS = 10_000;

/** Rows with equal values in the columns `by` are one group. `count` without a column counts rows. */
export const tableGroups = z.object({
  by: z.array(z.string()),
  aggregates: z.array(
    z.object({
      op: z.enum(['count', 'sum', 'mean', 'min', 'max']),
      column: z.string().optional(),
    }),
  ),
});
export type TableGroups = z.output<typeof tableGroups>;

/** What the host asks the user at a login (RFC 4256), to be answered in time. */
export const loginChallenge = z.object({
  challenge: z.string(),
  instruction: z.string(),
  prompts: z.array(z.object({ text: z.string(), echo: z.boolean() }).meta({ id: 'LoginPrompt' })),
  expires: z.iso.datetime(),
});

/** A login stops where the host asks something, or it is done. */
const loginResult = z.object({
  challenge: loginChallenge.optional(),
  /** What the host said at the login, if anything. */
  banner: z.string().optional(),
  /** The account's home there, where that is known: a file manager begins there. */
  home: z.string().optional(),
});

/** Every kind of job. The handler of a kind is workers/handlers/(kind).ts, typed from its entry here. */
export const JOBS = {
  connect: {
    means: 'Logs in to the host and opens the session, up to what the host asks its user.',
    queue: 'interactive',
    session: 'opens',
    /** Before 2 a worker did not ask the user. */
    version: 2,
    versionInNewerSessions: 3,
    payload: z.object({}),
    result: loginResult,
    endsWithClient: true,
  },
  answer: {
    means: 'Goes on with a login, by what the user has answered.',
    queue: 'interactive',
    session: 'opens',
    versionInNewerSessions: 2,
    payload: z.object({ challenge: z.string() }),
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
    /** Before 2 a worker knew the command alone. */
    version: 2,
    versionInNewerSessions: 3,
    payload: z.object({ command: commandText, ...launchOptions }),
    result: z.object({ returncode: z.number().int() }),
    retry: true,
  },
  batch: {
    means: "Submits a job to the host's batch system, and follows it.",
    queue: 'remote',
    session: 'uses',
    output: 'kept',
    versionInNewerSessions: 2,
    payload: batchRequest,
    result: z.object({ returncode: z.number().int() }),
    ownState: true,
    retry: true,
  },
  video: {
    means: 'Makes a video of frames on the host.',
    queue: 'video',
    // 2: patterns, frames that may be left out, codecs and backgrounds. 3: labels.
    version: 3,
    versionInNewerSessions: 4,
    session: 'uses',
    parent: 'project',
    objects: 'videos',
    payload: z.object({
      type: z.enum(['video/mp4', 'video/webm']),
      /** The list, or a pattern that is expanded on the host. */
      images: z.array(absolutePath).min(1).max(MAX_FRAMES).optional(),
      pattern: framePattern.optional(),
      first: position.optional(),
      last: position.optional(),
      step: z.number().int().min(1).max(1e9).optional(),
      fps: z.number().min(0.1).max(120),
      codec: z.enum(['h264', 'vp9', 'av1']).optional(),
      background: z
        .string()
        .regex(/^#[0-9a-fA-F]{6}$/, 'must be a colour such as #ffffff')
        .optional(),
      onBadFrame: z.enum(['fail', 'skip']).optional(),
      label: z.enum(['frame', 'name']).optional(),
      width: z.number().int().min(2).max(7680).optional(),
      quality: z.number().min(0).max(1).optional(),
      encode: z.enum(['host', 'worker']).optional(),
      /** The project cache that refers to the video once it is ready. */
      cache: z.object({ project: z.string(), key: z.string() }).optional(),
    }),
    result: z.object({
      object: z.string(),
      type: z.enum(['video/mp4', 'video/webm']),
      bytes: z.number().int(),
      frames: z.number().int(),
      encoded: z.enum(['host', 'worker']),
      /** The first hundred that were left out, and how many all were. */
      skipped: z.array(skippedFrame).optional(),
      skippedCount: z.number().int().optional(),
      /** Objects: the first picture, and small pictures side by side, for what shows a video before it is played. */
      poster: z.string().optional(),
      sprite: z.string().optional(),
      tiles: spriteTiles.optional(),
    }),
    retry: true,
  },
  browse: {
    means: 'Lists a directory on the host.',
    queue: 'interactive',
    session: 'uses',
    /** For each group of entries four lines of JSON, one a column. */
    output: 'streamed',
    versionInNewerSessions: 2,
    payload: z.object({ path: absolutePath }),
    result: z.object({ entries: z.number().int() }),
    endsWithClient: true,
  },
  file: {
    means: 'Reads a file on the host, or a range of it.',
    queue: 'interactive',
    session: 'uses',
    /** One line of JSON about the file, then its bytes. */
    output: 'streamed',
    versionInNewerSessions: 2,
    payload: z.object({
      path: absolutePath,
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
      /** The tag of the state that the range is meant for; of another one all is read. */
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
    versionInNewerSessions: 2,
    payload: z.object({
      path: absolutePath,
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
    }),
    result: z.object({ created: z.boolean() }),
    endsWithClient: true,
  },
  'remove-file': {
    means: 'Removes a file on the host.',
    queue: 'interactive',
    session: 'uses',
    versionInNewerSessions: 2,
    payload: z.object({ path: absolutePath }),
    result: z.object({}),
    endsWithClient: true,
  },
  copy: {
    means: 'Copies a file on the host into a part of an upload.',
    queue: 'remote',
    session: 'uses',
    parent: 'upload',
    objects: 'uploads',
    versionInNewerSessions: 2,
    payload: z.object({
      upload: z.string(),
      file: z.number().int(),
      part: z.number().int(),
      path: absolutePath,
    }),
    result: z.object({ size: z.number().int(), digest: z.string() }),
  },
  parse: {
    means: 'Parses a finished upload into artifacts of its model.',
    queue: 'parse',
    parent: 'upload',
    objects: 'artifacts',
    /** Before 3 a worker knows fewer parameters of parsers; before 2 it did not check every value of a table. */
    version: 3,
    payload: z.object({ upload: z.string() }),
    result: z.object({
      artifacts: z.array(
        z.object({ aid: z.string(), kind: z.enum(ARTIFACT_KINDS), size: z.number().int() }),
      ),
      /** What was sent. A worker of an earlier release does not tell. */
      files: z
        .array(
          z.object({
            size: z.number().int(),
            parts: z
              .object({
                /** So many parts of so many bytes follow one another. */
                sizes: z.array(z.tuple([z.number().int(), z.number().int()])),
                /** SHA-256 of the parts' SHA-256s, in base64. */
                digest: z.string(),
              })
              .optional(),
          }),
        )
        .optional(),
    }),
  },
  view: {
    means: 'Sorts, filters or groups a table into a view of it.',
    queue: 'parse',
    parent: 'model',
    objects: 'views',
    /** Before 2 a worker knows no "groups". */
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
/** Kinds that need an open session and nothing else. */
export type SessionKind = KindsWith<{ session: 'uses'; parent?: never }>;
/** Of these, the ones whose output is streamed to the client. */
export type StreamedKind = SessionKind & KindsWith<{ output: 'streamed' }>;
/** Kinds that are cancelled when the client that waits for them disconnects. */
export type AwaitedKind = KindsWith<{ endsWithClient: true }>;

export const JOB_KINDS = Object.keys(JOBS) as JobKind[];

export const KINDS_WITH_OWN_STATE = JOB_KINDS.filter(kind => jobDefinition(kind).ownState);

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

/** Whether such workers open the credentials of sessions. */
export const opensCredentials = (work: Work) =>
  JOB_KINDS.some(kind => jobDefinition(kind).session && workOf(kind) === work);

/** The workers that do such jobs. */
export function workOf(kind: JobKind): Work {
  const { queue } = JOBS[kind];
  const found = WORK.find(work => (QUEUES_OF[work] as readonly QueueName[]).includes(queue));
  if (!found) throw new Error(`no workers serve the queue ${queue}`);
  return found;
}

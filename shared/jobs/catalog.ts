import { z } from 'zod';

/** Queues, and so the kinds of work that a worker may take. */
export const QUEUES = ['remote', 'video', 'parse'] as const;
export type QueueName = (typeof QUEUES)[number];
/** What a worker program can be started with: a queue's work, or the upkeep of all. */
export const WORK = [...QUEUES, 'upkeep'] as const;
export type Work = (typeof WORK)[number];

interface Definition {
  queue: QueueName;
  payload: z.ZodType;
  result: z.ZodType;
  /** May a client ask for the same work again by POST /jobs/(id)/retry? */
  retry?: boolean;
  /** Does the work end when the client that waits for it leaves? */
  endsWithClient?: boolean;
}

export const absolutePath = z
  .string()
  .max(4096)
  .regex(/^\//, 'must be an absolute path')
  .refine(path => !path.includes('\0'), 'must not hold a NUL character')
  .refine(path => !/\p{Surrogate}/u.test(path), 'must be well-formed Unicode');

/** The program's own words for one command line: execve's limit for one argument is 128 KiB. */
export const commandText = z
  .string()
  .min(1)
  .refine(text => !text.includes('\0'), 'must not hold a NUL character')
  .refine(text => Buffer.byteLength(text) <= 131_000, 'must be at most 131,000 bytes long')
  .refine(text => !/\p{Surrogate}/u.test(text), 'must be well-formed Unicode');

/** One condition on a table's rows; `null` asks whether the value is missing ("true") or not ("false"). */
export const tableFilter = z.object({
  column: z.string(),
  op: z.enum(['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'null']),
  value: z.string(),
});
export type TableFilter = z.output<typeof tableFilter>;

/**
 * Every kind of job: where it queues, what goes in, what comes out. The handler is workers/handlers/(kind).ts and is
 * typed against this entry; nothing else needs to know a new kind.
 */
export const JOBS = {
  /** Logs in for the first time; makes the session usable. */
  connect: {
    queue: 'remote',
    payload: z.object({}),
    result: z.object({}),
    endsWithClient: true,
  },
  /** Connects once without logging in, to learn the keys that a new host shows. */
  'scan-host': {
    queue: 'remote',
    payload: z.object({ address: z.string(), port: z.number().int(), private: z.boolean() }),
    result: z.object({ keys: z.array(z.string()) }),
    endsWithClient: true,
  },
  /** A command on the remote host; the result is its exit status, its output is the job's. */
  command: {
    queue: 'remote',
    payload: z.object({ command: commandText }),
    result: z.object({ returncode: z.number().int() }),
    retry: true,
  },
  /** A video made from frames that lie on the remote host. */
  video: {
    queue: 'video',
    payload: z.object({
      type: z.enum(['video/mp4', 'video/webm']),
      images: z.array(absolutePath).min(1).max(100_000),
      fps: z.number().min(1).max(120),
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
    }),
    retry: true,
  },
  /** The entries of a directory on the host: for each group of them four lines of JSON in its output, one a column. */
  browse: {
    queue: 'remote',
    payload: z.object({ path: absolutePath }),
    result: z.object({ entries: z.number().int() }),
    endsWithClient: true,
  },
  /** A file on the host, or a range of it: one line of JSON about it in the job's output, then its bytes. */
  file: {
    queue: 'remote',
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
    }),
    result: z.object({ bytes: z.number().int() }),
    endsWithClient: true,
  },
  /** A part of an upload, copied from a file on the session's host. */
  copy: {
    queue: 'remote',
    payload: z.object({
      upload: z.string(),
      file: z.number().int(),
      part: z.number().int(),
      path: absolutePath,
    }),
    result: z.object({ size: z.number().int(), digest: z.string() }),
  },
  /** A finished upload, made into artifacts of its model. */
  parse: {
    queue: 'parse',
    payload: z.object({ upload: z.string() }),
    result: z.object({
      artifacts: z.array(
        z.object({ aid: z.string(), kind: z.enum(['file', 'table']), size: z.number().int() }),
      ),
    }),
  },
  /** A sorted or filtered copy of a table artifact: a row of table_views. */
  view: {
    queue: 'parse',
    payload: z.object({
      view: z.string(),
      source: z.string(),
      sort: z.array(z.object({ column: z.string(), descending: z.boolean() })),
      filter: z.array(tableFilter),
    }),
    result: z.object({ object: z.string(), size: z.number().int(), rows: z.number().int() }),
  },
} as const satisfies Record<string, Definition>;

export type JobKind = keyof typeof JOBS;
export type Payload<K extends JobKind> = z.output<(typeof JOBS)[K]['payload']>;
export type Result<K extends JobKind> = z.output<(typeof JOBS)[K]['result']>;

export function isJobKind(kind: string): kind is JobKind {
  return Object.hasOwn(JOBS, kind);
}

/** The definition of a kind, with the optional members of every definition. */
export function jobDefinition(kind: JobKind): Definition {
  return JOBS[kind];
}

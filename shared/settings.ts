import { z } from 'zod';

/** Bytes that one part of an upload may have at most: what S3 takes in one request. */
export const MAX_PART_BYTES = 5 * 2 ** 30;

/** A whole number from the environment. */
const whole = (min: number, max = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min).max(max));
const url = (...schemes: string[]) =>
  z.string().refine(
    value => {
      try {
        return schemes.includes(new URL(value).protocol.replace(':', ''));
      } catch {
        return false;
      }
    },
    `must be a URL that begins with ${schemes.map(scheme => `${scheme}://`).join(' or ')}`,
  );

const isBareOrigin = ({ pathname, search, username }: URL) =>
  pathname === '/' && search === '' && username === '';

/** The id of a pair and one of its halves. */
const SEAL_KEY = /^[0-9a-f]{8}\.[\w-]{40,}$/;

export interface Setting {
  schema: z.ZodType<unknown, string | undefined>;
  /** Used when the variable is absent or empty. */
  default?: string;
  meaning: string;
}

/** Every setting that Windlass knows, with its default and meaning. The docs' table is made from this. */
export const SETTINGS = {
  HOST: { schema: z.string(), default: '127.0.0.1', meaning: 'address the API listens on' },
  PORT: { schema: whole(1, 65_535), default: '8080', meaning: 'port the API listens on' },
  PUBLIC_URL: {
    schema: url('http', 'https').optional(),
    meaning:
      'the address clients use, when a proxy stands before the API (default: from HOST and PORT)',
  },
  TRUST_PROXY: {
    schema: whole(0, 10),
    default: '0',
    meaning: 'proxies before the API whose X-Forwarded-For is believed',
  },
  PROCFILE: {
    schema: z.string().optional(),
    meaning:
      'what `npm start` runs on a machine of a fleet, two of each line (default: the Procfile of Windlass)',
  },
  DATA_DIR: {
    schema: z.string().optional(),
    meaning: 'where the embedded database and the files live (default: ./data)',
  },
  ADMIN_USERNAME: {
    schema: z
      .string()
      .regex(
        /^\w[\w.@-]{0,63}$/,
        'must be 1 to 64 letters, digits, . _ @ -, and begin with no sign',
      ),
    default: 'admin',
    meaning: 'name of the first administrator',
  },
  ADMIN_PASSWORD: {
    schema: z.string().min(8, 'must have at least 8 characters').optional(),
    meaning:
      "the first administrator's password (default: made up at the first start and printed once)",
  },
  LOG_LEVEL: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    default: 'info',
    meaning: 'least severe log line that is written',
  },
  DATABASE_URL: {
    schema: url('postgres', 'postgresql').optional(),
    meaning: 'PostgreSQL 16 or newer (default: the embedded one)',
  },
  REDIS_URL: {
    schema: url('redis', 'rediss').optional(),
    meaning: 'Redis that carries the queues (default: the database carries them)',
  },
  SECRET_KEY: {
    schema: z.string().min(32, 'must have at least 32 characters').optional(),
    meaning: 'key of the HMACs that the API keeps (embedded: made at the first start)',
  },
  SEAL_PUBLIC_KEY: {
    schema: z.string().regex(SEAL_KEY, 'must be what `windlass keys new` prints').optional(),
    meaning: 'key that remote credentials are sealed to (embedded: made at the first start)',
  },
  SEAL_PRIVATE_KEYS: {
    schema: z
      .string()
      .refine(
        keys => keys.split(',').every(key => SEAL_KEY.test(key.trim())),
        'must be what `windlass keys new` prints',
      )
      .optional(),
    meaning:
      'keys that open them, comma separated, the current one first; for remote and video workers alone',
  },
  S3_ENDPOINT: {
    schema: url('http', 'https')
      .refine(
        value => !URL.canParse(value) || isBareOrigin(new URL(value)),
        'must be a scheme, a host and perhaps a port',
      )
      .optional(),
    meaning: 'MinIO or another S3 server that keeps the objects (default: files in DATA_DIR)',
  },
  S3_REGION: { schema: z.string(), default: 'us-east-1', meaning: 'region of the S3 server' },
  S3_BUCKET: {
    schema: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be a bucket name of S3'),
    default: 'windlass',
    meaning: 'bucket for all objects; made when it is missing',
  },
  S3_ACCESS_KEY: { schema: z.string().optional(), meaning: 'access key of the S3 server' },
  S3_SECRET_KEY: { schema: z.string().optional(), meaning: 'its secret' },
  LOGIN_TIMEOUT: {
    schema: whole(1, 31_536_000),
    default: '43200',
    meaning: 'seconds after which an unused login by cookie ends',
  },
  UPLOAD_IDLE_TIMEOUT: {
    schema: whole(1),
    default: '86400',
    meaning: 'seconds after which an upload that nothing was sent to ends',
  },
  SESSION_IDLE_TIMEOUT: {
    schema: whole(1),
    default: '900',
    meaning: 'seconds after which an unused remote session ends',
  },
  LAUNCH_MAX_WAIT: {
    schema: whole(0),
    default: '0',
    meaning: 'seconds that a launch is held before it is answered 202; 0: no limit',
  },
  LIMIT_COMMAND_SECONDS: {
    schema: whole(0),
    default: '0',
    meaning: 'longest run of a command, in seconds; 0: no limit',
  },
  LIMIT_SPOOL_BYTES: {
    schema: whole(1 << 20),
    default: String(1 << 30),
    meaning: 'output kept on a host until it is stored, in bytes per run',
  },
  LIMIT_OUTPUT_BYTES: {
    schema: whole(0),
    default: String(10 * 2 ** 30),
    meaning: 'largest output of a command, both streams together, in bytes',
  },
  LIMIT_PARSE_BYTES: {
    schema: whole(256 << 20),
    default: String(512 << 20),
    meaning: 'memory of the process that reads a table or makes a view of one, in bytes',
  },
  LIMIT_PARSE_SECONDS: {
    schema: whole(1),
    default: '3600',
    meaning: 'longest reading of one table file, or making of one view, in seconds',
  },
  LIMIT_OPEN_JOBS: {
    schema: whole(0),
    default: '10000',
    meaning:
      'jobs that one user may have open; requests that come at the same moment may begin some more; 0: no limit',
  },
  LIMIT_SESSIONS: {
    schema: whole(0),
    default: '100',
    meaning: 'remote sessions that one user may have open; 0: no limit',
  },
  LIMIT_STREAMS: {
    schema: whole(0),
    default: '10000',
    meaning:
      'event streams and outputs of jobs that one user may be reading, and as many requests held until a job has changed, in each API process; 0: no limit',
  },
  LIMIT_UPLOADS: {
    schema: whole(0),
    default: '1000',
    meaning: 'uploads that one user may have open; 0: no limit',
  },
  LIMIT_HEADER_BYTES: {
    schema: whole(16 << 10, 1 << 20),
    default: String(32 << 10),
    meaning: 'first line and header fields of one request, in bytes',
  },
  LIMIT_BODY_BYTES: {
    schema: whole(1 << 10, 16 << 20),
    default: String(1 << 20),
    meaning: 'body of one request, in bytes, where nothing else is said',
  },
  LIMIT_VALUE_BYTES: {
    schema: whole(1 << 10, 32 << 20),
    default: String(16 << 20),
    meaning: 'body that brings a parameter, a bookmark or an event, in bytes',
  },
  LIMIT_BODY_SECONDS: {
    schema: whole(1, 300),
    default: '20',
    meaning:
      'seconds within which each 64 KiB of a body must come, or its end; all of one, a part of an upload aside, within 15 times as long',
  },
  LIMIT_PART_BYTES: {
    schema: whole(1, MAX_PART_BYTES),
    default: String(MAX_PART_BYTES),
    meaning: 'one part of an upload, in bytes',
  },
  LIMIT_JSON_DEPTH: {
    schema: whole(1, 1_000),
    default: '100',
    meaning: 'arrays and objects within each other in one JSON body',
  },
  LIMIT_LIST_ITEMS: {
    schema: whole(1),
    default: '100000',
    meaning: 'items of one list in a JSON body; values and bookmarks are not looked into',
  },
  LIMIT_NAME_LENGTH: {
    schema: whole(1, 255),
    default: '255',
    meaning: 'name of a project, a model or an artifact, in characters',
  },
  LIMIT_KEY_LENGTH: {
    schema: whole(1, 900),
    default: '900',
    meaning: "key in a project's cache, in characters",
  },
  LIMIT_PROJECT_BYTES: {
    schema: whole(0),
    default: String(2 ** 40),
    meaning:
      'bytes that one project may keep: artifacts, parts of uploads, cached videos, bookmarks; 0: no limit',
  },
  LIMIT_FREE_BYTES: {
    schema: whole(0),
    default: String(1 << 30),
    meaning:
      'bytes that stay free on the disk of the files: a part of an upload that would take them, together with those on their way to the same API process, is refused; 0: no limit',
  },
  LIMIT_REQUESTS: {
    schema: whole(0),
    default: '500',
    meaning: 'requests a second of one user, in each API process; 0: no limit',
  },
  LIMIT_FAILED_LOGINS: {
    schema: whole(0),
    default: '10',
    meaning:
      'failed logins of one account from one address in 15 minutes, and ten times as many from one address; 0: no limit',
  },
  LIMIT_HOST_CONNECTS: {
    schema: whole(1, 100),
    default: '4',
    meaning: 'connections to one host that one worker makes at once',
  },
  REMOTE_SLOTS: {
    schema: whole(1, 1000),
    default: '64',
    meaning: 'remote jobs that one worker carries at once',
  },
  PARSE_SLOTS: {
    schema: whole(1, 100),
    default: '2',
    meaning: 'uploads and table views that one worker works on at once',
  },
  VIDEO_SLOTS: {
    schema: whole(1, 100),
    default: '2',
    meaning: 'videos that one worker makes at once',
  },
} as const satisfies Record<string, Setting>;

/** The settings as a Markdown table, for the docs. */
export function describeSettings(): string {
  const rows = Object.entries<Setting>(SETTINGS).map(
    ([name, { default: fallback, meaning }]) =>
      `| \`${name}\` | ${fallback ? `\`${fallback}\`` : ''} | ${meaning} |`,
  );
  return ['| setting | default | meaning |', '| --- | --- | --- |', ...rows].join('\n');
}

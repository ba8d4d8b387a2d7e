import { z } from 'zod';
import { splitHosts, targetOf } from './database/host-urls.ts';
import { CURRENT_ALGORITHMS, parseAlgorithms } from './ssh-algorithms.ts';

/** Largest part of an upload in bytes: the limit of S3 for one request. */
export const MAX_PART_BYTES = 5 * 2 ** 30;

/** A whole number from the environment. */
const whole = (min: number, max = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min).max(max));
/** A part of a whole from the environment, such as 0.5. */
const share = z
  .string()
  .regex(/^(0?\.\d+|[01](\.0*)?)$/, 'must be a number such as 0.5')
  .transform(Number)
  .pipe(z.number().gt(0, 'must be above 0').max(1, 'must be at most 1'));
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

const oneUrl = url('postgres', 'postgresql');
/** It may name several servers, separated by commas, as libpq has it. */
const databaseUrl = z
  .string()
  .refine(
    value => splitHosts(value).every(each => oneUrl.safeParse(each).success),
    'must be a URL that begins with postgres:// or postgresql://',
  )
  .refine(
    value => [null, 'read-write', 'primary'].includes(targetOf(value)),
    'target_session_attrs must be read-write or primary: Windlass writes',
  );

/** Tokens pass through it: plain http only within this machine. */
const issuerUrl = url('http', 'https').refine(value => {
  if (!URL.canParse(value)) return true;
  const { protocol, hostname, search, hash } = new URL(value);
  const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname);
  return (protocol === 'https:' || isLocal) && search === '' && hash === '';
}, 'must be https:// (http:// on this machine alone), without a query');

/** Origins as browsers write them in `Origin` (WHATWG HTML, 7.1.1), separated by commas. */
const origins = z
  .string()
  .transform(text => text.split(',').map(origin => origin.trim()))
  .pipe(
    z.array(
      z
        .string()
        .refine(
          isOrigin,
          'must be origins such as https://app.example, without a slash at their ends, separated by commas',
        ),
    ),
  );

function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, origin } = new URL(text);
  return ['http:', 'https:'].includes(protocol) && origin === text;
}

const isBareOrigin = ({ pathname, search, username }: URL) =>
  pathname === '/' && search === '' && username === '';

/** The id of a key pair, and one of its keys. */
const SEAL_KEY = /^[0-9a-f]{8}\.[\w-]{40,}$/;

const MARKING = /^[\w.-]{1,100}=[^,]{1,500}$/;

export interface Setting {
  schema: z.ZodType<unknown, string | undefined>;
  /** Applies when the variable is absent or empty. */
  default?: string;
  meaning: string;
}

/** Every setting with its default and meaning; docs/settings.md is made from this. */
export const SETTINGS = {
  HOST: { schema: z.string(), default: '127.0.0.1', meaning: 'address the API listens on' },
  PORT: { schema: whole(1, 65_535), default: '8080', meaning: 'port the API listens on' },
  PUBLIC_URL: {
    schema: url('http', 'https')
      .refine(
        value => !URL.canParse(value) || !/[?#@;,\s\\]|[^:]\/\//.test(value),
        'must be a scheme, a host and perhaps a port and a path',
      )
      .optional(),
    meaning:
      'URL that clients use, if the API is behind a proxy; it may hold a path, which the proxy strips (default: from HOST and PORT)',
  },
  TRUST_PROXY: {
    schema: whole(0, 10),
    default: '0',
    meaning: 'number of proxies before the API whose X-Forwarded headers are trusted',
  },
  ALLOWED_ORIGINS: {
    schema: origins.optional(),
    meaning:
      'origins, separated by commas, whose pages may call with `Authorization: Bearer` or a link, never with cookies or a password (default: none)',
  },
  PROCFILE: {
    schema: z.string().optional(),
    meaning:
      'processes that `npm start` runs on a machine of a fleet, two of each line (default: the Procfile of Windlass)',
  },
  DATA_DIR: {
    schema: z.string().optional(),
    meaning: 'folder of the embedded database and the files (default: ./data)',
  },
  API_USER: {
    schema: z.string().optional(),
    meaning:
      'account, or UID:GID, that the API runs as where root runs `npm start` without a fleet (default: `windlass-api` if there is that account, else root)',
  },
  ADMIN_USERNAME: {
    schema: z
      .string()
      .regex(
        /^\w[\w.@-]{0,63}$/,
        'must be 1 to 64 letters, digits, . _ @ - and begin with a letter, a digit or _',
      ),
    default: 'admin',
    meaning: 'name of the first administrator',
  },
  ADMIN_PASSWORD: {
    schema: z.string().min(8, 'must have at least 8 characters').optional(),
    meaning:
      "the first administrator's password (default: generated at the first start and printed once)",
  },
  LOG_LEVEL: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    default: 'info',
    meaning: 'least severe level that is logged',
  },
  DATABASE_URL: {
    schema: databaseUrl.optional(),
    meaning:
      'PostgreSQL 16 or newer (default: the embedded one); several hosts, separated by commas: the primary of them',
  },
  DATABASE_DIRECT_URL: {
    schema: databaseUrl.optional(),
    meaning:
      'the server of DATABASE_URL itself, where that is a connection pooler; for LISTEN, locks, migrations, and queues without Redis',
  },
  REDIS_URL: {
    schema: url('redis', 'rediss').optional(),
    meaning: 'Redis for the queues (default: the queues are in the database)',
  },
  SECRET_KEY: {
    schema: z.string().min(32, 'must have at least 32 characters').optional(),
    meaning: 'key of the HMACs that the API stores (embedded: generated at the first start)',
  },
  SECRET_KEY_BEFORE: {
    schema: z.string().min(32, 'must have at least 32 characters').optional(),
    meaning:
      'the SECRET_KEY before the present one, by which repeated requests are still recognised (embedded: kept by `windlass keys rotate`)',
  },
  SEAL_PUBLIC_KEY: {
    schema: z.string().regex(SEAL_KEY, 'must be what `windlass keys new` prints').optional(),
    meaning: 'key that encrypts remote credentials (embedded: generated at the first start)',
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
      'keys that decrypt them, separated by commas, the current one first; for remote and video workers only',
  },
  S3_ENDPOINT: {
    schema: url('http', 'https')
      .refine(
        value => !URL.canParse(value) || isBareOrigin(new URL(value)),
        'must be a scheme, a host and perhaps a port',
      )
      .optional(),
    meaning: 'MinIO or another S3 server that stores the objects (default: files in DATA_DIR)',
  },
  S3_PUBLIC_ENDPOINT: {
    schema: url('http', 'https')
      .refine(
        value => !URL.canParse(value) || isBareOrigin(new URL(value)),
        'must be a scheme, a host and perhaps a port',
      )
      .optional(),
    meaning: 'S3_ENDPOINT as browsers reach it, for VIDEO_DELIVERY (default: S3_ENDPOINT)',
  },
  VIDEO_DELIVERY: {
    schema: z.enum(['proxy', 'redirect']),
    default: 'proxy',
    meaning:
      'redirect: whoever fetches a video is sent to the S3 server, by an address that is good for an hour; proxy: the API passes its bytes on',
  },
  S3_REGION: { schema: z.string(), default: 'us-east-1', meaning: 'region of the S3 server' },
  S3_BUCKET: {
    schema: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be a bucket name of S3'),
    default: 'windlass',
    meaning: 'bucket for all objects; created if it does not exist',
  },
  S3_ACCESS_KEY: { schema: z.string().optional(), meaning: 'access key of the S3 server' },
  S3_SECRET_KEY: { schema: z.string().optional(), meaning: 'secret of the access key' },
  LOGIN_TIMEOUT: {
    schema: whole(1, 31_536_000),
    default: '43200',
    meaning: 'seconds after which an unused cookie login ends',
  },
  OIDC_ISSUER: {
    schema: issuerUrl.optional(),
    meaning:
      'identity provider (OpenID Connect) whose users may log in, as its discovery document names it (default: none)',
  },
  OIDC_CLIENT_ID: {
    schema: z.string().optional(),
    meaning:
      'how this service is registered there, with the callback PUBLIC_URL/api/login/oidc/callback',
  },
  OIDC_CLIENT_SECRET: {
    schema: z.string().optional(),
    meaning: 'its secret there; without one it is a public client, which PKCE protects',
  },
  OIDC_SCOPES: {
    schema: z.string().refine(value => value.split(' ').includes('openid'), 'must hold openid'),
    default: 'openid profile',
    meaning: 'what the provider is asked for, separated by spaces',
  },
  OIDC_USERNAME_CLAIM: {
    schema: z.string(),
    default: 'preferred_username',
    meaning: 'claim that names a user at the first login',
  },
  OIDC_ADMINISTRATORS: {
    schema: z
      .string()
      .regex(/^[^=]+=.+$/, 'must be claim=value')
      .optional(),
    meaning:
      'claim=value: who has it at a login is a server administrator until the next one, who lacks it is none (default: administrators decide)',
  },
  OIDC_AUDIENCE: {
    schema: z.string().optional(),
    meaning:
      'audience of access tokens (JWT) of that issuer that are accepted as Bearer (default: none are)',
  },
  SUPPORT_EMAIL: {
    schema: z
      .string()
      .regex(/^[^\s@<>?&#"]+@[^\s@<>?&#"]+$/, 'must be one address')
      .optional(),
    meaning: 'where users may ask for help, as clients show it (default: nowhere)',
  },
  MARKINGS: {
    schema: z
      .string()
      .transform(list => list.split(',').map(entry => entry.trim()))
      .refine(
        list => list.every(entry => MARKING.test(entry)),
        'must be type=label, separated by commas',
      )
      .transform(list =>
        list.map(entry => {
          const [, type = '', label = ''] = /^([^=]*)=(.*)$/.exec(entry) ?? [];
          return { type, label };
        }),
      ),
    default: 'none=No marking',
    meaning:
      'markings of models that clients offer, as type=label, separated by commas; a model takes any other too',
  },
  UPLOAD_IDLE_TIMEOUT: {
    schema: whole(1),
    default: '86400',
    meaning: 'seconds after which an upload that receives nothing ends',
  },
  SESSION_IDLE_TIMEOUT: {
    schema: whole(1),
    default: '900',
    meaning: 'seconds after which an unused remote session ends',
  },
  JOB_RETENTION_DAYS: {
    schema: whole(0, 36_500),
    default: '30',
    meaning:
      'days after which an ended job is removed with its output, and an ended remote session; 0: never',
  },
  AUDIT_RETENTION_DAYS: {
    schema: whole(0, 36_500),
    default: '365',
    meaning: 'days after which an entry of the audit is removed; 0: never',
  },
  LAUNCH_MAX_WAIT: {
    schema: whole(0),
    default: '0',
    meaning: 'seconds that a launch waits before it is answered 202; 0: no limit',
  },
  LIMIT_COMMAND_SECONDS: {
    schema: whole(0),
    default: '0',
    meaning: 'longest run of a command in seconds; 0: no limit',
  },
  LIMIT_SPOOL_BYTES: {
    schema: whole(1 << 20),
    default: String(1 << 30),
    meaning: 'output that a host buffers until it is stored, in bytes per run',
  },
  LIMIT_OUTPUT_BYTES: {
    schema: whole(0),
    default: String(10 * 2 ** 30),
    meaning: 'largest output of a command in bytes, both streams together, and largest video',
  },
  LIMIT_VIDEO_BYTES: {
    schema: whole(256 << 20),
    default: String(8 * 2 ** 30),
    meaning:
      'memory in bytes of an ffmpeg that encodes a video; frames of 8192×8192 pixels need 2 GB',
  },
  LIMIT_VIDEO_SECONDS: {
    schema: whole(1, 2_000_000),
    default: '86400',
    meaning: 'longest time in seconds for encoding one video',
  },
  LIMIT_PARSE_BYTES: {
    schema: whole(256 << 20),
    default: String(512 << 20),
    meaning: 'memory in bytes of the process that parses a table or makes a view',
  },
  LIMIT_EXPANDED_BYTES: {
    schema: whole(1 << 20),
    default: String(100 * 2 ** 30),
    meaning:
      'largest size in bytes that a compressed upload expands to; at most a thousand times its own',
  },
  LIMIT_PARSE_SECONDS: {
    schema: whole(1),
    default: '3600',
    meaning: 'longest time in seconds for parsing one table file or making one view',
  },
  LIMIT_OPEN_JOBS: {
    schema: whole(0),
    default: '10000',
    meaning: 'open jobs of one user; concurrent requests may start a few more; 0: no limit',
  },
  LIMIT_SESSIONS: {
    schema: whole(0),
    default: '100',
    meaning: 'open remote sessions of one user; 0: no limit',
  },
  LIMIT_STREAMS: {
    schema: whole(0),
    default: '10000',
    meaning:
      'open event streams and job outputs of one user in each API process, and as many requests that wait for a job; 0: no limit',
  },
  LIMIT_UPLOADS: {
    schema: whole(0),
    default: '1000',
    meaning: 'open uploads of one user; 0: no limit',
  },
  LIMIT_HEADER_BYTES: {
    schema: whole(16 << 10, 1 << 20),
    default: String(32 << 10),
    meaning: 'first line and header fields of a request, in bytes',
  },
  LIMIT_BODY_BYTES: {
    schema: whole(1 << 10, 16 << 20),
    default: String(1 << 20),
    meaning: 'body of a request in bytes, unless another limit applies',
  },
  LIMIT_VALUE_BYTES: {
    schema: whole(1 << 10, 32 << 20),
    default: String(16 << 20),
    meaning: 'body of a parameter, a bookmark or an event, in bytes',
  },
  LIMIT_BODY_SECONDS: {
    schema: whole(1, 300),
    default: '20',
    meaning:
      'seconds within which each 64 KiB of a body must arrive; the whole body, except a part of an upload, within 15 times as long',
  },
  LIMIT_PART_BYTES: {
    schema: whole(1, MAX_PART_BYTES),
    default: String(MAX_PART_BYTES),
    meaning: 'part of an upload, in bytes',
  },
  LIMIT_JSON_DEPTH: {
    schema: whole(1, 1_000),
    default: '100',
    meaning: 'nesting depth of arrays and objects in a JSON body',
  },
  LIMIT_LIST_ITEMS: {
    schema: whole(1),
    default: '100000',
    meaning: 'items of a list in a JSON body; does not apply inside values and bookmarks',
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
      'bytes that a project may store: artifacts, parts of uploads, cached videos, bookmarks; 0: no limit',
  },
  LIMIT_CACHE_BYTES: {
    schema: whole(0),
    default: '0',
    meaning:
      "bytes that a project's cache keeps: beyond it what was not used for longest is removed; 0: no limit",
  },
  LIMIT_CACHE_DAYS: {
    schema: whole(0, 36_500),
    default: '0',
    meaning: "days after which what nobody used is removed from a project's cache; 0: never",
  },
  LIMIT_USER_BYTES: {
    schema: whole(0),
    default: '0',
    meaning:
      'bytes that a user may store: output and videos of jobs, parts of uploads, and what this user put into projects; 0: no limit',
  },
  LIMIT_FREE_BYTES: {
    schema: whole(0),
    default: String(1 << 30),
    meaning:
      'bytes kept free on the disk of the files: parts of uploads, output, videos, tables and views that would use them are refused; 0: no limit',
  },
  LIMIT_REQUESTS: {
    schema: whole(0),
    default: '500',
    meaning: 'requests per second of one user in each API process; 0: no limit',
  },
  LIMIT_FAILED_LOGINS: {
    schema: whole(0),
    default: '10',
    meaning:
      'failed logins of one account from one address in 15 minutes, and ten times as many from one address; 0: no limit, and no delay after failures from many addresses',
  },
  LIMIT_HOST_CONNECTS: {
    schema: whole(1, 100),
    default: '4',
    meaning: 'connections to one host that a worker opens at once',
  },
  SSH_ALGORITHMS: {
    schema: z.string().transform((text, context) => {
      const found = parseAlgorithms(text);
      if (!('problem' in found)) return found;
      context.addIssue(found.problem);
      return z.NEVER;
    }),
    default: Object.values(CURRENT_ALGORITHMS).flat().join(','),
    meaning:
      'key exchanges, ciphers and MACs that hosts are connected to with, the preferred ones first; for old hosts also `hmac-sha1`, `aes128-cbc` and others, which a wrong name lists',
  },
  WEBHOOK_PRIVATE: {
    schema: z.enum(['true', 'false']).transform(value => value === 'true'),
    default: 'false',
    meaning:
      '`true`: webhooks may lead to loopback, link-local and private addresses, so to whatever workers reach there',
  },
  LIMIT_SHARE: {
    schema: share,
    default: '0.5',
    meaning:
      'share of the slots of a kind that one user is given at most while work of another user waits; above 0, at most 1',
  },
  REMOTE_SLOTS: {
    schema: whole(1, 1000),
    default: '64',
    meaning: 'commands and copies that a remote worker runs at once',
  },
  INTERACTIVE_SLOTS: {
    schema: whole(1, 1000),
    default: '32',
    meaning:
      'requests that wait for a host, such as a login or a listing, which a remote worker does at once, besides REMOTE_SLOTS',
  },
  PARSE_SLOTS: {
    schema: whole(1, 100),
    default: '2',
    meaning: 'uploads and table views that a worker processes at once',
  },
  VIDEO_SLOTS: {
    schema: whole(1, 100),
    default: '2',
    meaning: 'videos that a worker encodes at once',
  },
} as const satisfies Record<string, Setting>;

/** The settings as a Markdown table, for docs/settings.md. */
export function describeSettings(): string {
  const rows = Object.entries<Setting>(SETTINGS).map(
    ([name, { default: fallback, meaning }]) =>
      `| \`${name}\` | ${fallback ? `\`${fallback}\`` : ''} | ${meaning} |`,
  );
  return ['| setting | default | meaning |', '| --- | --- | --- |', ...rows].join('\n');
}

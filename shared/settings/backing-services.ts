import { z } from 'zod';
import type { Setting } from './setting.ts';
import { databaseUrl, endpoint, redisUrl } from './values.ts';

/** The database, the queues and the object store. */
export const BACKING_SERVICES = {
  DATABASE_URL: {
    schema: databaseUrl.optional(),
    meaning:
      'PostgreSQL 16 or newer (default: the embedded one); several hosts, separated by commas: the primary of them; for TLS it ends with ?sslmode=verify-full, and with &sslrootcert=FILE for an authority of your own',
  },
  DATABASE_DIRECT_URL: {
    schema: databaseUrl.optional(),
    meaning:
      'the server of DATABASE_URL itself, where that is a connection pooler; for LISTEN, locks, migrations, and queues without Redis',
  },
  REDIS_URL: {
    schema: redisUrl.optional(),
    meaning: 'Redis for the queues (default: the queues are in the database)',
  },
  S3_ENDPOINT: {
    schema: endpoint.optional(),
    meaning: 'MinIO or another S3 server that stores the objects (default: files in DATA_DIR)',
  },
  S3_PUBLIC_ENDPOINT: {
    schema: endpoint.optional(),
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
} as const satisfies Record<string, Setting>;

import { z } from 'zod';
import type { Setting } from './setting.ts';
import { host, markings, origins, publicUrl, whole } from './values.ts';

/** How the service is reached, and what it says of itself. */
export const SERVICE = {
  HOST: { schema: host, default: '127.0.0.1', meaning: 'address the API listens on' },
  PORT: { schema: whole(1, 65_535), default: '8080', meaning: 'port the API listens on' },
  PUBLIC_URL: {
    schema: publicUrl.optional(),
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
  WORKER_PROCESSES: {
    schema: whole(1, 64),
    default: '2',
    meaning:
      'workers of every kind that `npm start` runs without a fleet; while one of two starts again, the other goes on',
  },
  DATA_DIR: {
    schema: z.string().optional(),
    meaning: 'folder of the embedded database and the files (default: ./data)',
  },
  API_USER: {
    schema: z.string().optional(),
    meaning:
      'account, or UID:GID, that the API runs as where root runs `npm start` without a fleet (default: `windlass-api` if there is that account, else a number that no account has, where that can be; `root`: root)',
  },
  WORKER_USER: {
    schema: z.string().optional(),
    meaning:
      'account, or UID:GID, that the workers run as where root runs `npm start` without a fleet, and may make user namespaces (default: `windlass-worker` if there is that account, else a number that no account has, where that can be; `root`: root)',
  },
  LOG_LEVEL: {
    schema: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
    default: 'info',
    meaning: 'least severe level that is logged',
  },
  SUPPORT_EMAIL: {
    schema: z
      .string()
      .regex(/^[^\s@<>?&#"]+@[^\s@<>?&#"]+$/, 'must be one address')
      .optional(),
    meaning: 'where users may ask for help, as clients show it (default: nowhere)',
  },
  MARKINGS: {
    schema: markings,
    default: 'none=No marking',
    meaning:
      'markings of models that clients offer, as type=label, separated by commas; a model takes any other too',
  },
} as const satisfies Record<string, Setting>;

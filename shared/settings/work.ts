import { z } from 'zod';
import { CURRENT_ALGORITHMS } from '../ssh/algorithms.ts';
import type { Setting } from './setting.ts';
import { sshAlgorithms, whole } from './values.ts';

/** A thousand years: what is so long ago is still a time to PostgreSQL and to JavaScript. */
const MAX_SECONDS = 31_536_000_000;

/** How much each worker does at once, how it reaches hosts, and how long what it made is kept. */
export const WORK = {
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
  VIDEO_SHARE_SECONDS: {
    schema: whole(0, MAX_SECONDS),
    default: '10',
    meaning:
      'a video that takes a worker longer than so many more seconds is encoded by idle video workers as well; 0: never',
  },
  SSH_ALGORITHMS: {
    schema: sshAlgorithms,
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
  LAUNCH_MAX_WAIT: {
    schema: whole(0),
    default: '0',
    meaning: 'seconds that a launch waits before it is answered 202; 0: no limit',
  },
  SESSION_IDLE_TIMEOUT: {
    schema: whole(1, MAX_SECONDS),
    default: '900',
    meaning: 'seconds after which an unused remote session ends',
  },
  UPLOAD_IDLE_TIMEOUT: {
    schema: whole(1, MAX_SECONDS),
    default: '86400',
    meaning:
      'seconds after which an upload that receives nothing ends, and after which the parts of one are removed whose parse failed',
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
} as const satisfies Record<string, Setting>;

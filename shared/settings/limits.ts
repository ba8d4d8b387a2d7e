import type { Setting } from './setting.ts';
import { share, whole } from './values.ts';

/** Largest part of an upload in bytes: the limit of S3 for one request. */
export const MAX_PART_BYTES = 5 * 2 ** 30;

/** What one user, request or job may use. */
export const LIMITS = {
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
    meaning:
      'largest output of a command in bytes, both streams together, largest listing of a directory, and largest video; 0: no limit',
  },
  LIMIT_VIDEO_BYTES: {
    schema: whole(256 << 20),
    default: String(8 * 2 ** 30),
    meaning:
      'memory in bytes of an ffmpeg that encodes a video; frames of 8192×8192 pixels need 2 GB',
  },
  LIMIT_FRAME_PIXELS: {
    schema: whole(1, 2 ** 26),
    default: String(2 ** 26),
    meaning: 'pixels of the largest frame of a video; 8192×8192 at most',
  },
  LIMIT_VIDEO_SECONDS: {
    schema: whole(1, 2_000_000),
    default: '86400',
    meaning:
      'longest time in seconds for encoding one video, and for each look at its frames before',
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
      'largest size in bytes that a compressed upload expands to, at most a thousand times its own, or that rows of JSON and workbooks take as CSV',
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
  LIMIT_JSON_MEMBERS: {
    schema: whole(1),
    default: '20000',
    meaning:
      'members of all objects of a JSON body together; does not apply inside values and bookmarks',
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
      'bytes that a user may store: output, videos and large input of jobs, parts of uploads, and what this user put into projects; 0: no limit',
  },
  LIMIT_FREE_BYTES: {
    schema: whole(0),
    default: String(1 << 30),
    meaning:
      'bytes kept free on the disk of the files: uploads, output, videos, tables, views, projects, models, bookmarks, parameters, jobs, sessions, links, webhooks and further access that would use them are refused; 0: no limit',
  },
  LIMIT_REQUESTS: {
    schema: whole(0),
    default: '500',
    meaning: 'requests per second of one user in each API process; 0: no limit',
  },
  LIMIT_EVENT_BYTES: {
    schema: whole(0),
    default: String(1 << 20),
    meaning:
      'bytes of client events (POST /events) of one user in a minute in each API process; 0: no limit',
  },
  LIMIT_FAILED_LOGINS: {
    schema: whole(0),
    default: '10',
    meaning:
      'failed logins of one account from one address in 15 minutes, and ten times as many from one address; 0: no limit, and no delay after failures from many addresses',
  },
  LIMIT_REFUSED_LOGINS: {
    schema: whole(0),
    default: '4',
    meaning:
      'logins of one user that a host refuses in 15 minutes, before more of them are sent no credential; 0: no limit',
  },
  LIMIT_HOST_CONNECTS: {
    schema: whole(1, 100),
    default: '4',
    meaning: 'connections to one host that a worker opens at once',
  },
  LIMIT_SHARE: {
    schema: share,
    default: '0.5',
    meaning:
      'share of the slots of a kind that one user is given at most while work of another user waits; above 0, at most 1',
  },
} as const satisfies Record<string, Setting>;

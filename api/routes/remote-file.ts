import type { Request } from 'express';
import { z } from 'zod';
import type { SessionRecord } from '../../shared/database/api-columns.ts';
import { type ErrorCode, WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import type { Result } from '../../shared/jobs/catalog.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { readRange } from '../http/byte-range.ts';
import type { Exchange } from '../http/exchange.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { invalidInput } from '../http/validate.ts';
import { identifyLateSender } from '../identity/identify-sender.ts';
import { awaitJob } from '../jobs/requests/await-job.ts';
import { repeatsEarlierRequest } from '../jobs/requests/repeats-earlier-request.ts';
import { requireWorker } from '../jobs/requests/require-worker.ts';
import {
  SESSION_JOB_ERRORS,
  startRequestedJob,
  startSessionJob,
} from '../jobs/requests/start-requested-job.ts';
import { disableBodyTimeouts } from '../middleware/limit-body-time.ts';
import { operation } from '../openapi/operation.ts';
import { readFromHost } from '../remote/read-from-host.ts';
import { remotePath } from '../remote/remote-path.ts';
import { sendFile } from '../remote/send-file.ts';
import {
  findSession,
  keepSessionAlive,
  lockSession,
  type SessionKey,
  sessionKey,
} from '../remote/sessions.ts';
import { readContentDigest } from '../uploads/content-digest.ts';
import { refuseOtherContent } from '../uploads/refuse-other-content.ts';
import { checkAnnouncedSize, storeBody } from '../uploads/store-part.ts';

const writeQuery = z.strictObject({
  mode: z
    .string()
    .regex(/^[0-7]{3,4}$/, 'must be permissions in octal, such as 0644')
    .optional()
    .describe('Permissions in octal, such as 0644; else those of the file that is replaced.'),
  parents: z
    .enum(['true', 'false'])
    .optional()
    .describe('`true` makes the folders that are missing.'),
});
const writtenFile = z
  .object({
    path: z.string(),
    size: z.number().int(),
    digest: z.string().describe('SHA-256 in base64.'),
  })
  .meta({ id: 'WrittenFile' });

const HOST_FILE_ERRORS = [
  ...SESSION_JOB_ERRORS,
  'bad_request',
  'invalid_input',
  'not_found',
  'forbidden',
  'sftp_unavailable',
  'shell_unusable',
  'time_limit',
] satisfies ErrorCode[];

/** Files of the host: read, or a range of them; written; removed. */
export default routes('raw-body', (router, api) => {
  resource(router, '/remotes/:sid/file{/*path}', {
    get: operation({
      id: 'fetchFile',
      topic: 'files',
      summary: 'Fetch a file of the host, or a range of it',
      headers: ['If-Match', 'If-None-Match', 'If-Range', 'Range'],
      answers: {
        200: { means: 'All of it.', types: ['application/octet-stream'] },
        206: { means: 'The range.', types: ['application/octet-stream'] },
        304: 'Unchanged.',
      },
      errors: [...HOST_FILE_ERRORS, 'conflict', 'precondition_failed', 'range_not_satisfiable'],
      reachesHost: true,
      handle: async ({ req, res }) => {
        const path = remotePath(req, 'file');
        refuseCaching(req);
        const headOnly = req.method === 'HEAD';
        const payload = { path, headOnly, range: readRange(req), ifRange: readTag(req) };
        const request = { kind: 'file' as const, payload };
        await readFromHost(api, { req, res }, request, reading =>
          sendFile(api, { req, res, ...reading }),
        );
      },
    }),
    put: operation({
      id: 'writeFile',
      topic: 'files',
      summary: 'Write a file on the host',
      details:
        'The bytes are stored here, then written beside the file and renamed: it is there whole, or as before. Of `Content-Digest` sha-256 is verified. A link is followed.',
      bodies: [{ type: 'application/octet-stream', means: 'The bytes.', schema: z.file() }],
      query: writeQuery,
      headers: ['Content-Digest', 'If-Match', 'If-None-Match', 'Idempotency-Key'],
      answers: {
        200: { means: 'The file was replaced.', json: writtenFile },
        201: { means: 'The file is new.', json: writtenFile },
      },
      errors: [
        ...HOST_FILE_ERRORS,
        'conflict',
        'digest_mismatch',
        'idempotency_conflict',
        'precondition_failed',
        'remote_disk_full',
        'payload_too_large',
        'unsupported_media_type',
        'insufficient_storage',
        'too_many_requests',
      ],
      reachesHost: true,
      handle: async ({ req, res, query }) => {
        const path = writablePath(req);
        refuseOtherContent(req);
        const { mode, parents } = query();
        const options = {
          mode: mode === undefined ? undefined : Number.parseInt(mode, 8),
          parents: parents === 'true',
          exclusive: isNewOnly(req),
          ifMatch: readIfMatch(req),
        };
        const key = sessionKey(api, res, pathParameter(req, 'sid'));
        // Before the bytes are taken.
        const { refusal, session } = await admit({ req, res }, key);
        const id = newId();
        const stopKeeping = session && (await keepSessionAlive(api, session, key.idleSeconds));
        const { object, size, digest } = await store(req, { id, owner: key.owner }).finally(
          stopKeeping,
        );
        // An Idempotency-Key is bound to these.
        req.body = { size, digest, ...options };
        const ended = await withObject(object, async () => {
          await identifyLateSender(api, { req, res });
          const start = () =>
            startRequestedJob(api, { req, res }, async tx => {
              if (refusal) throw refusal;
              await lockSession(tx, key);
              const payload = { path, object, size, digest, ...options };
              return { kind: 'write-file', id, session: key.sid, payload };
            });
          return awaitJob(api, res, start);
        });
        if (!ended) return;
        const { created } = ended.result as Result<'write-file'>;
        res.status(created ? 201 : 200).json({ path, size, digest });
      },
    }),
    delete: operation({
      id: 'removeFile',
      topic: 'files',
      summary: 'Remove a file on the host',
      details: 'Of a link the link.',
      headers: ['If-Match', 'Idempotency-Key'],
      answers: { 204: 'Removed.' },
      errors: [
        ...HOST_FILE_ERRORS,
        'conflict',
        'idempotency_conflict',
        'precondition_failed',
        'too_many_requests',
      ],
      reachesHost: true,
      handle: async ({ req, res }) => {
        const path = writablePath(req);
        const session = pathParameter(req, 'sid');
        const payload = { path, ifMatch: readIfMatch(req) };
        // An Idempotency-Key is bound to it.
        if (payload.ifMatch) req.body = payload;
        const request = { kind: 'remove-file' as const, payload, session };
        const start = () => startSessionJob(api, { req, res }, request);
        if (await awaitJob(api, res, start)) res.status(204).end();
      },
    }),
  });

  /** Throws what forbids to write. A repeat may have its answer already: it is refused where no job is found. */
  async function admit(
    { req, res }: Exchange,
    key: SessionKey,
  ): Promise<{ refusal?: unknown; session?: SessionRecord }> {
    try {
      const session = await findSession(api.database.db, key);
      await requireWorker(api, 'write-file');
      return { session };
    } catch (refusal) {
      if (await repeatsEarlierRequest(api, { req, res })) return { refusal };
      throw refusal;
    }
  }

  /** Stores the request's body, for the job of this id. */
  async function store(req: Request, { id, owner }: { id: string; owner: string }) {
    const { LIMIT_PART_BYTES: limit, LIMIT_BODY_SECONDS } = api.config;
    checkAnnouncedSize(req, limit);
    const expected = readContentDigest(req.get('Content-Digest'));
    const given = req.get('Content-Length');
    if (req.res) disableBodyTimeouts(req.res);
    const length = given === undefined ? undefined : Number(given);
    return api.bodyStore.store(owner, length, reservation => {
      const key = newObjectKey('files', id);
      const windowMs = LIMIT_BODY_SECONDS * 1_000;
      const options = { objects: api.objects, key, limit, expected, reservation, windowMs };
      return storeBody(req, options);
    });
  }

  /** Removes the object when the work with it has ended. */
  async function withObject<T>(object: string, work: () => Promise<T>): Promise<T> {
    let isUnknown = false;
    try {
      return await work();
    } catch (error) {
      // A job may still read it: garbage collection decides later.
      isUnknown = !(error instanceof WindlassError);
      throw error;
    } finally {
      if (!isUnknown) await api.objects.remove(object).catch(() => {});
    }
  }
});

/** Slycat keeps a file in a project's cache where these are given: ignoring them would pretend that we did. */
function refuseCaching({ query }: Request): void {
  const given = ['cache', 'project', 'key'].filter(name => Object.hasOwn(query, name));
  if (given.length === 0) return;
  throw invalidInput(
    given.map(field => ({ field, problem: 'is not a known parameter' })),
    'Omit them: only videos are kept in a cache, by GET /api/remotes/(sid)/videos/(vsid).',
  );
}

/** Listings show U+FFFD for bytes that are not UTF-8: the file that is meant has another name. A slash ends a folder. */
function writablePath(req: Request): string {
  const path = remotePath(req, 'file');
  if (path.endsWith('/'))
    throw invalidInput(
      [{ field: 'path', problem: 'ends with a slash, as no file does' }],
      'Give the path of a file; a command makes or removes a folder.',
    );
  if (!path.includes('\ufffd')) return path;
  throw invalidInput(
    [{ field: 'path', problem: 'holds U+FFFD, which stands for bytes that are not UTF-8' }],
    'Rename what it names on the host, or write or remove it by a command.',
  );
}

/** The tag of If-Range; a weak one, or a date, fits no state (RFC 9110, 13.1.5). */
function readTag(req: Request): string | undefined {
  const given = req.get('If-Range')?.trim();
  return given === undefined ? undefined : (/^"([^"]*)"$/.exec(given)?.[1] ?? '');
}

/** RFC 9110, 13.1.2. The state of a file is not read before it is written: no value but `*` prevents that. */
const isNewOnly = (req: Request): boolean => req.get('If-None-Match')?.trim() === '*';

/** The strong tags of If-Match, or `*`: a weak one never matches (RFC 9110, 13.1.1). */
function readIfMatch(req: Request): string[] | undefined {
  const given = req.get('If-Match')?.trim();
  return given?.split(',').flatMap(tag => /^\s*(\*|"[^"]*")\s*$/.exec(tag)?.[1] ?? []);
}

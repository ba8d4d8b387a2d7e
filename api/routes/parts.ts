import { and, eq } from 'drizzle-orm';
import type { Request, RequestHandler } from 'express';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { parts } from '../../shared/database/schema.ts';
import { type JobSummary, jobRecord, toJobRecord } from '../../shared/jobs/job-record.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { absolutePath } from '../../shared/jobs/payloads/absolute-path.ts';
import { assertStorage } from '../../shared/quotas/storage-limits.ts';
import { assertFreeSpace } from '../../shared/storage/free-space.ts';
import { removeIfRolledBack } from '../../shared/storage/remove-if-rolled-back.ts';
import { keepUploadAlive } from '../../shared/uploads/keep-upload-alive.ts';
import {
  assertPartLimit,
  assertUploadOpen,
  commitPart,
  findPartSize,
  lockUpload,
  MAX_FILES,
  MAX_PARTS,
  type UploadFound,
} from '../../shared/uploads/uploads.ts';
import { checkIfMatch, checkIfNoneMatch, refuseIfMatch } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { parseInput } from '../http/validate.ts';
import { identifyLateSender } from '../identity/identify-sender.ts';
import { unlessRepeated } from '../jobs/requests/repeats-earlier-request.ts';
import { startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import { disableBodyTimeouts } from '../middleware/limit-body-time.ts';
import { readJson } from '../middleware/read-json.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';
import { lockSession, sessionKey, touchSession } from '../remote/sessions.ts';
import { assertPartsAreSent } from '../uploads/begin-upload.ts';
import { readContentDigest } from '../uploads/content-digest.ts';
import {
  findUpload,
  lockOwnUpload,
  readUploadKey,
  type UploadKey,
} from '../uploads/find-upload.ts';
import { mostFileBytes, mostFormBytes, readForm } from '../uploads/read-form.ts';
import { refuseOtherContent } from '../uploads/refuse-other-content.ts';
import { checkAnnouncedSize, type StoredBytes, storeBody } from '../uploads/store-part.ts';

const position = (limit: number) =>
  z
    .string()
    .regex(/^(0|[1-9]\d{0,8})$/, `must be a whole number from 0 to ${limit - 1}`)
    .transform(Number)
    .refine(n => n < limit, `must be a whole number from 0 to ${limit - 1}`);
const partParameters = z.object({ fid: position(MAX_FILES), part: position(MAX_PARTS) });
const remoteFile = z
  .strictObject({ sid: z.string(), path: absolutePath })
  .meta({ id: 'RemoteFile' });
const partForm = z.strictObject({ file: z.file() }).meta({ id: 'PartForm' });

const FORM = 'application/x-www-form-urlencoded';
const MULTIPART = 'multipart/form-data';

/** The part that a request names. */
interface PartKey extends UploadKey {
  file: number;
  part: number;
}

/** The part that a request names, in an upload that accepts it. */
interface PartTarget extends PartKey {
  /** The project of the upload. */
  project: string;
  found: UploadFound;
}

/** Parts of an upload, streamed into the object store. */
export default routes('raw-body', (router, api) => {
  const { db } = api.database;
  const readJsonBody = readJson(api.config, api.requestMemory);
  resource(router, '/uploads/:uid/files/:fid/parts/:part', {
    put: operation({
      id: 'sendPart',
      topic: 'uploads',
      summary: 'Send a part of a file',
      details: `The bytes as they are, or a form with \`file\` (urlencoded: in base64); in any order and many at once, the same part again replaces it. Or \`sid\` and \`path\`: the server copies that remote file itself, as a job. \`fid\` is below ${MAX_FILES}, \`part\` below ${MAX_PARTS}, and an upload has at most ${MAX_PARTS} parts of at most 5 GiB (LIMIT_PART_BYTES). Of \`Content-Digest\` sha-256 is verified, other algorithms are passed over.`,
      bodies: [
        { type: 'application/octet-stream', means: 'The bytes of the part.', schema: z.file() },
        {
          type: MULTIPART,
          means: 'The file; or, instead of it, the fields `sid` and `path` of a remote file.',
          schema: partForm,
        },
        {
          type: FORM,
          means:
            'The file, `file`, in base64; or, instead of it, `sid` and `path` of a remote file.',
          inWords: true,
        },
        { type: 'application/json', means: 'A remote file to copy.', schema: remoteFile },
      ],
      headers: ['Content-Digest', 'If-Match', 'If-None-Match', 'Idempotency-Key'],
      answers: {
        200: { means: 'The part is stored.', headers: { ETag: 'From its SHA-256.' } },
        202: answerWithLocation('The remote file is being copied.', 'The job.', jobRecord),
      },
      errors: [
        'invalid_input',
        'bad_request',
        'digest_mismatch',
        'forbidden',
        'not_found',
        'session_not_found',
        'host_changed',
        'conflict',
        'idempotency_conflict',
        'payload_too_large',
        'unsupported_media_type',
        'insufficient_storage',
      ],
      handle: async ({ req, res }) => {
        const at = readPartKey({ req, res });
        const given = await receive(at, { req, res });
        if ('stored' in given) {
          await commit(at, { req, res, stored: given.stored });
          return void res.set('ETag', tagOf(given.stored)).end();
        }
        await identifyLateSender(api, { req, res });
        const job = await startCopy(at, { req, res, fields: given.fields });
        res.status(202).location(`/api/jobs/${job.id}`).json(toJobRecord(job));
      },
    }),
  });

  /** Checks all that can be checked before the body is read. */
  async function findTarget(at: PartKey): Promise<PartTarget> {
    const found = await findUpload(db, at);
    assertUploadOpen(found);
    assertPartsAreSent(found);
    return { ...at, project: found.project, found };
  }

  /** Stores the bytes of the part; or returns the fields that name a remote file. */
  async function receive(at: PartKey, { req, res }: Exchange) {
    const type = req.is([MULTIPART, FORM, 'application/json']);
    if (type !== 'application/json')
      return store(await findTarget(at), { req, res, isForm: type === MULTIPART || type === FORM });
    await unlessRepeated(api, { req, res }, () => findTarget(at));
    await runMiddleware(readJsonBody, { req, res });
    return { fields: req.body as unknown };
  }

  /** Streams the body into the store; the upload is not idle meanwhile. */
  async function store(
    { uid, owner, project, file, part, found }: PartTarget,
    { req, res, isForm }: Exchange & { isForm: boolean },
  ) {
    refuseOtherContent(req);
    const limit = api.config.LIMIT_PART_BYTES;
    checkAnnouncedSize(req, limit, isForm ? mostFormBytes(req, limit) : limit);
    const expected = readContentDigest(req.get('Content-Digest'));
    await assertPartLimit(db, found, { file, part });
    await checkPart(db, req, { uid, file, part });
    const given = req.get('Content-Length');
    const whole = given === undefined ? undefined : Number(given);
    const length = isForm && whole !== undefined ? mostFileBytes(req, whole) : whole;
    await refuseFull({ owner, project, uid, file, part }, length ?? 0);
    disableBodyTimeouts(res);
    const idleSeconds = api.config.UPLOAD_IDLE_TIMEOUT;
    const stopKeeping = await keepUploadAlive(api, found.upload, idleSeconds);
    try {
      const windowMs = api.config.LIMIT_BODY_SECONDS * 1_000;
      return await api.bodyStore.store(owner, length, async reservation => {
        const key = newObjectKey('uploads', uid);
        const options = { objects: api.objects, key, limit, expected, reservation, windowMs };
        return isForm ? readForm(req, options) : { stored: await storeBody(req, options) };
      });
    } finally {
      stopKeeping();
    }
  }

  /** Checks Content-Length; commitPart() checks the bytes received. */
  async function refuseFull(
    { owner, project, uid, file, part }: Omit<PartTarget, 'found'>,
    length: number,
  ): Promise<void> {
    const limits = api.config;
    await api.bodyStore.check(length);
    if (limits.LIMIT_PROJECT_BYTES === 0 && limits.LIMIT_USER_BYTES === 0) return;
    const before = await findPartSize(db, { upload: uid, file, part });
    const added = length - (before ?? 0);
    await assertStorage(db, { project, user: owner, added, limits });
  }

  async function commit(
    { uid, file, part }: PartKey,
    { req, res, stored }: Exchange & { stored: StoredBytes },
  ): Promise<void> {
    try {
      await identifyLateSender(api, { req, res });
      const limits = api.config;
      // The length may have been unknown, or other parts were stored concurrently.
      await assertFreeSpace(api.objects, { added: 0, limit: limits.LIMIT_FREE_BYTES });
      await db.transaction(async tx => {
        if (hasConditions(req)) {
          // Locked until this commits, so that of two requests with one tag the second fails.
          await lockUpload(tx, uid);
          await checkPart(tx, req, { uid, file, part });
        }
        await commitPart(tx, { upload: uid, file, part, ...stored }, limits);
      });
    } catch (error) {
      await removeIfRolledBack(api.objects, [stored.object], error);
      throw error;
    }
  }

  async function startCopy(
    at: PartKey,
    { req, res, fields }: Exchange & { fields: unknown },
  ): Promise<JobSummary> {
    const { sid, path } = parseInput(fields ?? {}, remoteFile);
    // An Idempotency-Key is bound to these fields, whatever the body's media type.
    req.body = { sid, path };
    const { uid, file, part } = at;
    let touch = async () => {};
    const job = await startRequestedJob(api, { req, res }, async tx => {
      const session = await lockSession(tx, sessionKey(api, res, sid));
      touch = () => touchSession(api, session);
      const found = await lockOwnUpload(tx, at);
      assertUploadOpen(found);
      await assertPartLimit(tx, found, { file, part });
      await checkPart(tx, req, at);
      return {
        kind: 'copy',
        payload: { upload: uid, file, part, path },
        session: sid,
        project: found.project,
        model: found.upload.model,
        upload: uid,
      };
    });
    await touch();
    return job;
  }
});

function readPartKey({ req, res }: Exchange): PartKey {
  const { fid, part } = parseInput(req.params, partParameters);
  return { ...readUploadKey({ req, res }), file: fid, part };
}

/** The entity tag of a stored part. */
const tagOf = ({ digest }: { digest: string }) =>
  `"${Buffer.from(digest, 'base64').toString('hex')}"`;

const hasConditions = (req: Request): boolean =>
  (req.get('If-Match') ?? req.get('If-None-Match')) !== undefined;

/** Checks If-Match and If-None-Match (RFC 9110, 13.1) against the stored part. */
async function checkPart(
  tx: Tx,
  req: Request,
  { uid, file, part }: Pick<PartTarget, 'uid' | 'file' | 'part'>,
): Promise<void> {
  if (!hasConditions(req)) return;
  const [present] = await tx
    .select({ digest: parts.digest })
    .from(parts)
    .where(and(eq(parts.upload, uid), eq(parts.file, file), eq(parts.part, part)));
  if (present) {
    checkIfMatch(req, tagOf(present));
    return checkIfNoneMatch(req, tagOf(present));
  }
  refuseIfMatch(req, 'part');
}

function runMiddleware(middleware: RequestHandler, { req, res }: Exchange): Promise<void> {
  return new Promise((resolve, reject) => {
    const next = (error?: unknown) => (error ? reject(error) : resolve());
    void Promise.resolve(middleware(req, res, next)).catch(reject);
  });
}

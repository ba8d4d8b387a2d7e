import { and, count, eq, inArray, isNull, ne } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import {
  artifacts,
  jobs,
  members,
  models,
  projects,
  type UploadRow,
  uploads,
} from '../../shared/database/schema.ts';
import { conflict, WindlassError } from '../../shared/errors.ts';
import { newId } from '../../shared/ids.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import { isParserName, PARSERS, type ParserName } from '../../shared/parsers.ts';
import { lockUpload, MAX_FILES, removeUpload } from '../../shared/uploads.ts';
import type { ApiContext } from '../context.ts';
import { checkIfMatch, entityTag, sendRecord } from '../http/conditional-requests.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { parseInput } from '../http/validate.ts';
import { currentUser } from '../identity/current-user.ts';
import { lockUser } from '../identity/lock-user.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';
import { bumpModel, lockModel } from '../projects/access.ts';
import { nameText } from '../projects/text-fields.ts';
import { findUpload, readUploadKey } from '../uploads/find-upload.ts';
import {
  type ParseJob,
  parseJobColumns,
  readParts,
  summaryColumns,
  toUploadRecord,
  toUploadSummary,
  uploadRecord,
  uploadState,
  uploadSummary,
} from '../uploads/upload-record.ts';

/** The most characters of all names: a model's record shows the names of 200 uploads. */
const MAX_NAMES = 65_536;
/** Of one part in the upload's record. */
const PART_BYTES = 120;
const newUpload = (longest: number) =>
  z.looseObject({
    mid: z.string(),
    input: z.boolean(),
    parser: z
      .string()
      .refine(isParserName, `must be one of ${Object.keys(PARSERS).join(', ')}`)
      .meta({ description: 'See GET /configuration/parsers; its parameters stand beside it.' }),
    aids: z
      .array(nameText(longest))
      .min(1)
      .max(MAX_FILES)
      .refine(names => new Set(names).size === names.length, 'must all be different')
      .refine(
        names => names.reduce((sum, { length }) => sum + length, 0) <= MAX_NAMES,
        `must have at most ${MAX_NAMES} characters together`,
      ),
  });

/** Upload sessions. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;

  resource(router, '/uploads', {
    get: operation({
      summary: 'List your upload sessions',
      query: pageQuery,
      answers: { 200: { means: 'A page of uploads.', json: pageOf(uploadSummary) } },
      handle: async ({ res, query }) => {
        const rows = selectMine(db, currentUser(res).username);
        const page = await readPage(rows, query(), { by: uploads.uid, key: 'id' }, row =>
          toUploadSummary(row.upload, row.job ?? row.upload.parseEnd),
        );
        res.json(page);
      },
    }),
    post: operation({
      summary: 'Begin an upload into a model',
      details: `\`aids\` names the artifacts, one a file, at most ${MAX_FILES}; a parser that makes several of one file adds /name.`,
      body: newUpload(api.config.LIMIT_NAME_LENGTH),
      answers: { 201: answerWithLocation('The upload takes parts.', 'The upload.') },
      errors: ['forbidden', 'not_found', 'conflict'],
      handle: async ({ res, body }) => {
        const owner = currentUser(res).username;
        const { mid, input, parser, aids, ...rest } = body();
        const parameters = parseInput(rest, PARSERS[parser as ParserName].parameters);
        const uid = newId();
        await db.transaction(async tx => {
          await lockUser(tx, owner);
          const { model } = await lockModel(tx, mid, { username: owner, role: 'writer' });
          await refuseOtherKind(tx, { mid, aids, makes: PARSERS[parser as ParserName].makes });
          await refuseTooMany(api, tx, owner);
          await tx
            .insert(uploads)
            .values({ uid, owner, model: model.mid, parser, parameters, aids, input });
        });
        res.status(201).location(`/api/uploads/${uid}`).json({ id: uid });
      },
    }),
  });

  resource(router, '/uploads/:uid', {
    get: operation({
      summary: 'Look at an upload: what has arrived, and what became of it',
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The upload.', json: uploadRecord }, 304: 'Unchanged.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const { upload } = await findUpload(db, readUploadKey(req, res));
        const job = await findJob(db, upload);
        await api.memory.reserveIfLarge(res, upload.parts * PART_BYTES);
        // Read after the record: a part that arrives in between is shown under the older tag, and never missed.
        const stored = await readParts(db, upload.uid);
        sendRecord(req, res, {
          tag: tagOf(upload.version, job),
          record: () => toUploadRecord(upload, job, stored),
        });
      },
    }),
    delete: operation({
      summary: 'Give an upload up',
      details: 'Its parts are removed and its copies cancelled.',
      headers: ['If-Match'],
      answers: { 204: 'Upload session deleted.' },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const key = readUploadKey(req, res);
        const cancelled = await db.transaction(async tx => {
          const found = await findUpload(tx, key);
          // The model's record shows its parses, and one may disappear.
          await lockModel(tx, found.upload.model, { username: key.owner, role: 'reader' });
          const { upload } = await lockUpload(tx, key.uid);
          const job = await findJob(tx, upload);
          checkIfMatch(req, tagOf(upload.version, job));
          if (uploadState(upload, job) === 'parsing') throw isParsing(upload.job);
          if (upload.job !== null) await bumpModel(tx, upload.model);
          return removeUpload(tx, key.uid);
        });
        publishCancelled(api, cancelled);
        res.statusMessage = 'Upload session deleted.';
        res.status(204).end();
      },
    }),
  });
});

/** The user's uploads into projects of which they are members. */
function selectMine(db: Tx, owner: string) {
  const mine = db
    .select({ project: members.project })
    .from(members)
    .innerJoin(projects, and(eq(projects.pid, members.project), isNull(projects.deleted)))
    .where(eq(members.username, owner));
  return db
    .select({ upload: summaryColumns, job: parseJobColumns })
    .from(uploads)
    .innerJoin(
      models,
      and(eq(models.mid, uploads.model), eq(uploads.owner, owner), inArray(models.project, mine)),
    )
    .leftJoin(jobs, eq(jobs.id, uploads.job));
}

const tagOf = (version: number, job: ParseJob | null) =>
  entityTag(job ? `${version}.${job.version}` : version);

async function findJob(tx: Tx, upload: UploadRow): Promise<ParseJob | null> {
  if (upload.job === null || upload.parseEnd !== null) return upload.parseEnd;
  const [job] = await tx.select(parseJobColumns).from(jobs).where(eq(jobs.id, upload.job));
  if (job) return job;
  // It was removed just now.
  const [now] = await tx
    .select({ parseEnd: uploads.parseEnd })
    .from(uploads)
    .where(eq(uploads.uid, upload.uid));
  return now?.parseEnd ?? null;
}

async function refuseOtherKind(
  tx: Tx,
  { mid, aids, makes }: { mid: string; aids: string[]; makes: 'file' | 'table' },
): Promise<void> {
  const [other] = await tx
    .select({ aid: artifacts.aid, kind: artifacts.kind })
    .from(artifacts)
    .where(and(eq(artifacts.model, mid), inArray(artifacts.aid, aids), ne(artifacts.kind, makes)))
    .limit(1);
  if (!other) return;
  throw conflict(
    `the artifact ${other.aid} of this model is a ${other.kind}, and this parser makes a ${makes}.`,
    `Choose another name, or DELETE /api/models/(mid)/${other.kind}s/(aid) first.`,
  );
}

async function refuseTooMany({ config }: ApiContext, tx: Tx, owner: string): Promise<void> {
  const limit = config.LIMIT_UPLOADS;
  if (limit === 0) return;
  const [open] = await tx
    .select({ n: count() })
    .from(uploads)
    // Uploads of deleted projects do not count: upkeep ends them.
    .innerJoin(models, eq(models.mid, uploads.model))
    .innerJoin(projects, and(eq(projects.pid, models.project), isNull(projects.deleted)))
    .where(and(eq(uploads.owner, owner), isNull(uploads.job)));
  if ((open?.n ?? 0) < limit) return;
  throw new WindlassError('too_many_requests', {
    detail: `You have ${limit} open uploads, which is the limit.`,
    hint: 'Finish some, or end them with DELETE /api/uploads/(uid). LIMIT_UPLOADS sets the limit.',
    headers: { 'Retry-After': '60' },
  });
}

const isParsing = (job: string | null) =>
  conflict(
    'the upload is being parsed.',
    `Wait for its job, or cancel that with DELETE /api/jobs/${job}.`,
  );

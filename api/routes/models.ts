import { and, asc, eq, gt, sql } from 'drizzle-orm';
import type { Response } from 'express';
import { z } from 'zod';
import { artifacts, type ModelRow, models } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { ARTIFACT_KINDS } from '../../shared/uploads/parsers.ts';
import { answerNotModified, checkIfMatch, checkIfNoneMatch } from '../http/conditional-requests.ts';
import { limitPageBytes, pageOf, pageQuery, pageQueryBy, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { answerWithId, operation } from '../openapi/operation.ts';
import {
  findModel,
  findProject,
  lockModel,
  lockProjectForShare,
  needRole,
} from '../projects/access.ts';
import { deleteModel } from '../projects/delete-model.ts';
import {
  modelTag,
  parseRecord,
  readParseSizes,
  readParseStates,
  readParses,
} from '../projects/model-parses.ts';
import { longText, nameText } from '../projects/text-fields.ts';

const description = longText(20_000);
const marking = longText(20_000);
const newModel = (longest: number) =>
  z
    .strictObject({
      'model-type': nameText(longest),
      name: nameText(longest),
      description: description.default(''),
      marking: marking.default(''),
    })
    .meta({ id: 'NewModel' });
const changes = (longest: number) =>
  z
    .strictObject({
      name: nameText(longest).optional(),
      description: description.optional(),
      marking: marking.optional(),
    })
    .meta({ id: 'ModelChanges' });
/** A page of artifacts: a model may have any number of them. */
const modelQuery = pageQueryBy(255, { max: 10_000, default: 1_000 });

const artifactItem = z
  .object({
    aid: z.string(),
    type: z.enum(['parameter', ...ARTIFACT_KINDS]),
    input: z.boolean(),
    size: z.number().int(),
    updated: z.date(),
  })
  .meta({ id: 'Artifact' });
const { aid, kind: type, input, size, updated } = artifacts;
const ARTIFACT = { aid, type, input, size, updated };
const modelItem = z
  .object({
    id: z.string(),
    project: z.string(),
    'model-type': z.string(),
    name: z.string(),
    description: z.string(),
    marking: z.string(),
    created: z.date(),
    updated: z.date(),
  })
  .meta({ id: 'ModelSummary' });
const modelRecord = modelItem
  .extend({
    artifacts: z.array(artifactItem),
    next: z.string().nullable().describe('`after` of the next page of artifacts.'),
    parses: z.array(parseRecord),
  })
  .meta({ id: 'Model' });

/** Length of the texts that clients write; Postgres knows it without reading them. */
const TEXT_BYTES = sql<number>`octet_length(${models.description}) + octet_length(${models.marking})`;

const toModelItem = (row: ModelRow): z.output<typeof modelItem> => ({
  id: row.mid,
  project: row.project,
  'model-type': row.type,
  name: row.name,
  description: row.description,
  marking: row.marking,
  created: row.created,
  updated: row.updated,
});

/** Models of a project. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const longest = api.config.LIMIT_NAME_LENGTH;

  const readNameBytes = async (mid: string, { limit, after }: z.output<typeof modelQuery>) => {
    const names = db
      .select({ aid: artifacts.aid })
      .from(artifacts)
      .where(
        and(eq(artifacts.model, mid), after === undefined ? undefined : gt(artifacts.aid, after)),
      )
      .orderBy(asc(artifacts.aid))
      .limit(limit)
      .as('names');
    const bytes = sql<number>`coalesce(sum(octet_length(${names.aid})), 0)`.mapWith(Number);
    const [row] = await db.select({ bytes }).from(names);
    return row?.bytes ?? 0;
  };
  const readRecord = async (
    model: ModelRow,
    which: z.output<typeof modelQuery>,
    res: Response,
  ): Promise<z.output<typeof modelRecord>> => {
    const fitting = limitPageBytes(await readParseSizes(db, model.mid));
    const names = await readNameBytes(model.mid, which);
    // Names and stored JSON at most double in length when encoded as JSON.
    const check = () => findModel(db, model.mid, needRole(res, 'reader'));
    await api.requestMemory.reserveIfLarge(res, 2 * (fitting.bytes + names), check);
    const parses = await readParses(db, model.mid, fitting.count);
    const order = { by: artifacts.aid, key: 'aid', where: eq(artifacts.model, model.mid) } as const;
    const rows = db.select(ARTIFACT).from(artifacts);
    const { items, next } = await readPage(rows, which, order, row => row);
    return { ...toModelItem(model), artifacts: items, next, parses };
  };

  resource(router, '/projects/:pid/models', {
    get: operation({
      id: 'listModels',
      topic: 'models',
      summary: 'List the models of a project',
      details: 'A page has fewer than `limit` where their texts are long; `next` leads on.',
      query: pageQuery,
      answers: { 200: { means: 'A page of models.', json: pageOf('ModelPage', modelItem) } },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const pid = pathParameter(req, 'pid');
        const find = () => findProject(db, pid, needRole(res, 'reader'));
        const { project } = await find();
        const sizes = db.select({ bytes: TEXT_BYTES }).from(models);
        const reserve = (bytes: number) => api.requestMemory.reserveIfLarge(res, bytes, find);
        const where = eq(models.project, project.pid);
        const order = { by: models.mid, key: 'id', where, long: { sizes, reserve } } as const;
        res.json(await readPage(db.select().from(models), query(), order, toModelItem));
      },
    }),
    post: operation({
      id: 'createModel',
      topic: 'models',
      summary: 'Make a model in a project',
      details: "`model-type` is any name: what it means is the client's own.",
      body: newModel(longest),
      answers: { 201: answerWithId('Made.', 'The model.') },
      errors: ['not_found', 'forbidden'],
      handle: async ({ req, res, body }) => {
        const pid = pathParameter(req, 'pid');
        const need = needRole(res, 'writer');
        await findProject(db, pid, need);
        const { 'model-type': type, ...given } = body();
        await api.freeSpace.assertFree();
        const mid = newId();
        await db.transaction(async tx => {
          await lockProjectForShare(tx, pid, need);
          await tx.insert(models).values({ mid, project: pid, type, ...given });
        });
        res.status(201).location(`/api/models/${mid}`).json({ id: mid });
      },
    }),
  });

  resource(router, '/models/:mid', {
    get: operation({
      id: 'getModel',
      topic: 'models',
      summary: 'Look at a model, its artifacts and its parses',
      details:
        'Artifacts are sorted by name and come in pages; of the parses, the newest 200, or fewer where they name very much.',
      query: modelQuery,
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The model.', json: modelRecord }, 304: 'Unchanged.' },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const { model } = await findModel(db, pathParameter(req, 'mid'), needRole(res, 'reader'));
        const which = query();
        const tag = modelTag(model, await readParseStates(db, model.mid));
        // The tag is read before the record: a change in between is shown under the older tag, and never missed.
        if (answerNotModified({ req, res }, tag)) return;
        res.json(await readRecord(model, which, res));
      },
    }),
    put: operation({
      id: 'changeModel',
      topic: 'models',
      summary: 'Change a model',
      body: changes(longest),
      headers: ['If-Match', 'If-None-Match'],
      answers: { 200: { means: 'Changed.', json: modelItem } },
      errors: ['not_found', 'forbidden'],
      handle: async ({ req, res, body }) => {
        const mid = pathParameter(req, 'mid');
        const need = needRole(res, 'writer');
        await findModel(db, mid, need);
        const given = body();
        await api.freeSpace.assertFree();
        const row = await db.transaction(async tx => {
          const { model } = await lockModel(tx, mid, need);
          const tag = modelTag(model, await readParseStates(tx, mid));
          checkIfMatch(req, tag);
          checkIfNoneMatch(req, tag);
          const [changed] = await tx
            .update(models)
            .set({ ...given, version: sql`${models.version} + 1`, updated: sql`now()` })
            .where(eq(models.mid, mid))
            .returning();
          return changed ?? model;
        });
        res.json(toModelItem(row));
      },
    }),
    delete: operation({
      id: 'deleteModel',
      topic: 'models',
      summary: 'Delete a model with all that it holds',
      headers: ['If-Match'],
      answers: { 204: 'Deleted.' },
      errors: ['not_found', 'forbidden'],
      handle: async ({ req, res }) => {
        await deleteModel(api, { req, res }, pathParameter(req, 'mid'));
        res.status(204).end();
      },
    }),
  });
});

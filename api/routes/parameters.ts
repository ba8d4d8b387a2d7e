import { and, eq, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { artifacts } from '../../shared/database/schema.ts';
import { notFound, WindlassError } from '../../shared/errors/errors.ts';
import { chargeStorage, growthOf } from '../../shared/quotas/storage-limits.ts';
import type { ArtifactKind } from '../../shared/uploads/parsers.ts';
import {
  answerNotModified,
  checkIfMatch,
  checkIfNoneMatch,
  entityTag,
  refuseIfMatch,
} from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { refuseNonJson } from '../http/validate.ts';
import { currentUser } from '../identity/current-user.ts';
import { identifyLateSender } from '../identity/identify-sender.ts';
import { operation } from '../openapi/operation.ts';
import {
  bumpModel,
  findModel,
  lockModel,
  needRole,
  type RoleRequirement,
} from '../projects/access.ts';
import { readArtifactName, readNewArtifactName } from '../projects/artifact-names.ts';

const parameterBody = z
  .strictObject({
    value: z.unknown().describe('Any JSON value, `null` too.'),
    input: z
      .boolean()
      .optional()
      .describe('Whether it is an input of the model. Absent: as before, and false at first.'),
  })
  .meta({ id: 'NewParameter' });

/** All but the value, which may be large. */
const HEAD = {
  kind: artifacts.kind,
  size: artifacts.size,
  version: artifacts.version,
  storedBy: artifacts.storedBy,
};

/** Parameters of a model: JSON values, kept byte for byte. */
export default routes('raw-body', (router, api) => {
  const { db } = api.database;
  const place = ({ req, res }: Exchange, role: RoleRequirement['role']) => ({
    mid: pathParameter(req, 'mid'),
    need: needRole(res, role),
  });
  const nameIn = ({ req }: Exchange) => readArtifactName(pathParameter(req, 'aid'));

  resource(router, '/models/:mid/parameters/:aid', {
    get: operation({
      id: 'getParameter',
      topic: 'models',
      summary: 'Look at a parameter: its bare value',
      details: 'Byte for byte as it was sent, less white space around it.',
      headers: ['If-None-Match'],
      answers: {
        200: { means: 'The value.', json: z.unknown(), headers: { ETag: 'Its validator.' } },
        304: 'Unchanged.',
      },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const { mid, need } = place({ req, res }, 'reader');
        const aid = nameIn({ req, res });
        await findModel(db, mid, need);
        const known = requireParameter(await findArtifact(db, mid, aid), aid);
        const tag = entityTag(known.version);
        res.type('application/json');
        if (answerNotModified({ req, res }, tag)) return;
        if (req.method === 'HEAD') return void res.set('Content-Length', String(known.size)).end();
        await api.requestMemory.reserveIfLarge(res, known.size, () => findModel(db, mid, need));
        const [found] = await db
          .select({ ...HEAD, value: artifacts.value })
          .from(artifacts)
          .where(and(eq(artifacts.model, mid), eq(artifacts.aid, aid)));
        // The parameter may have been replaced meanwhile.
        const { version, value } = requireParameter(found, aid);
        const bytes = Buffer.from(value ?? '');
        res.set('ETag', entityTag(version)).set('Content-Length', String(bytes.length)).end(bytes);
      },
    }),
    put: operation({
      id: 'storeParameter',
      topic: 'models',
      summary: 'Store a parameter',
      details:
        'Its value is kept byte for byte. At most 16 MiB (LIMIT_VALUE_BYTES), nested at most 100 deep (LIMIT_JSON_DEPTH); a member of the body that is given twice is refused.',
      bodies: [{ type: 'application/json', means: 'The value.', schema: parameterBody }],
      headers: ['If-Match', 'If-None-Match'],
      answers: { 200: 'Stored.' },
      errors: [
        'invalid_input',
        'payload_too_large',
        'unsupported_media_type',
        'not_found',
        'forbidden',
        'conflict',
        'insufficient_storage',
      ],
      handle: async ({ req, res }) => {
        const longest = api.config.LIMIT_NAME_LENGTH;
        const { mid, need } = place({ req, res }, 'writer');
        const aid = readNewArtifactName(pathParameter(req, 'aid'), longest);
        await findModel(db, mid, need);
        await api.freeSpace.assertFree();
        const { text, input } = await api.rawJson.read({ req, res }, 'parameter');
        await identifyLateSender(api, { req, res });
        await db
          .transaction(async tx => {
            const { project } = await lockModel(tx, mid, need);
            const present = await findArtifact(tx, mid, aid);
            if (present) {
              const tag = entityTag(requireParameter(present, aid).version);
              checkIfMatch(req, tag);
              checkIfNoneMatch(req, tag);
            } else refuseIfMatch(req, 'parameter');
            const size = Buffer.byteLength(text);
            const storedBy = currentUser(res).username;
            const growth = growthOf({ size, storedBy }, present);
            const version = await bumpModel(tx, mid, growth.added);
            const mark = input === undefined ? {} : { input };
            const set = { value: text, size, version, storedBy, ...mark };
            await tx
              .insert(artifacts)
              .values({ model: mid, aid, kind: 'parameter', ...set })
              .onConflictDoUpdate({
                target: [artifacts.model, artifacts.aid],
                set: { ...set, updated: sql`now()` },
              });
            const charge = { project: project.pid, user: storedBy, ...growth };
            await chargeStorage(tx, { ...charge, limits: api.config });
          })
          .catch(refuseNonJson('value'));
        res.status(200).end();
      },
    }),
    delete: operation({
      id: 'removeParameter',
      topic: 'models',
      summary: 'Remove a parameter',
      headers: ['If-Match'],
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'forbidden', 'conflict'],
      handle: async ({ req, res }) => {
        const { mid, need } = place({ req, res }, 'writer');
        const aid = nameIn({ req, res });
        await db.transaction(async tx => {
          await lockModel(tx, mid, need);
          const { version, size } = requireParameter(await findArtifact(tx, mid, aid), aid);
          checkIfMatch(req, entityTag(version));
          await tx.delete(artifacts).where(and(eq(artifacts.model, mid), eq(artifacts.aid, aid)));
          await bumpModel(tx, mid, -size);
        });
        res.status(204).end();
      },
    }),
  });
});

async function findArtifact(db: Tx, mid: string, aid: string) {
  const [row] = await db
    .select(HEAD)
    .from(artifacts)
    .where(and(eq(artifacts.model, mid), eq(artifacts.aid, aid)));
  return row;
}

function requireParameter<T extends { kind: 'parameter' | ArtifactKind }>(
  row: T | undefined,
  aid: string,
): T {
  if (!row)
    throw notFound(
      `this model has no parameter ${aid}.`,
      'GET /api/models/(mid) lists what it has.',
    );
  if (row.kind === 'parameter') return row;
  throw new WindlassError('conflict', {
    detail: `${aid} is a ${row.kind}, not a parameter.`,
    hint: `See /api/models/(mid)/${row.kind}s/(aid)${row.kind === 'file' ? '' : '/metadata'}, or choose another name.`,
  });
}

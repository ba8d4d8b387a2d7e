import { and, eq } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { artifacts, type CsvDialect } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { type ArtifactKind, withArticle } from '../../shared/uploads/parsers.ts';
import type { ApiContext } from '../context.ts';
import { entityTag } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { pathParameter } from '../http/resource.ts';
import { findModel, needRole } from '../projects/access.ts';
import { readArtifactName } from '../projects/artifact-names.ts';

/** An artifact in the object store. */
export interface StoredArtifact {
  model: string;
  project: string;
  aid: string;
  object: string;
  size: number;
  rows: number;
  /** Null where it was not made from CSV. */
  dialect: CsvDialect | null;
  /** The object's entity tag. */
  tag: string;
}

export interface ArtifactRequest extends Exchange {
  kind: ArtifactKind;
}

/** The artifact of this kind that the path names. Throws `not_found`, also when the user is no member of the project. */
export async function findStoredArtifact(
  api: ApiContext,
  { req, res, kind }: ArtifactRequest,
): Promise<StoredArtifact> {
  const { db } = api.database;
  const aid = readArtifactName(pathParameter(req, 'aid'));
  const mid = pathParameter(req, 'mid');
  const { model, project } = await findModel(db, mid, needRole(res, 'reader'));
  const found = await selectStoredArtifact(db, { mid: model.mid, aid, kind });
  const tag = objectTag(found.object);
  return { ...found, model: model.mid, project: project.pid, aid, rows: found.rows ?? 0, tag };
}

const { kind, object, size, rows, dialect } = artifacts;
const COLUMNS = { kind, object, size, rows, dialect };

/** An object never changes under its key. */
const objectTag = (object: string) => entityTag({ key: object });

export async function selectStoredArtifact(
  db: Tx,
  { mid, aid, kind }: { mid: string; aid: string; kind: ArtifactRequest['kind'] },
): Promise<Pick<StoredArtifact, 'object' | 'size' | 'dialect'> & { rows: number | null }> {
  const [found] = await db
    .select(COLUMNS)
    .from(artifacts)
    .where(and(eq(artifacts.model, mid), eq(artifacts.aid, aid)));
  if (found?.kind !== kind || found.object === null)
    throw new WindlassError('not_found', {
      detail: found
        ? `${aid} is ${withArticle(found.kind)}, not ${withArticle(kind)}.`
        : `the model has no ${kind} ${aid}.`,
      hint:
        found?.kind === 'file' && kind === 'table'
          ? 'To have a table of it, upload it again with a parser, such as parser="csv".'
          : 'GET /api/models/(mid) lists its artifacts.',
    });
  const { object, size, rows, dialect } = found;
  return { object, size, rows, dialect };
}

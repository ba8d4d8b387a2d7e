import { and, count, eq, inArray, isNull, ne } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import {
  artifacts,
  members,
  models,
  projects,
  type TusUpload,
  type UploadRow,
  uploads,
} from '../../shared/database/schema.ts';
import { conflict, WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import {
  isParserName,
  ourParserName,
  PARSERS,
  type ParserName,
  withArticle,
} from '../../shared/uploads/parsers.ts';
import { MAX_FILES } from '../../shared/uploads/uploads.ts';
import type { ApiContext } from '../context.ts';
import { parseInput } from '../http/validate.ts';
import { lockUser } from '../identity/lock-user.ts';
import { lockModel } from '../projects/access.ts';
import { artifactName } from '../projects/artifact-names.ts';

/** The most characters of all names: a model's record shows the names of 200 uploads. */
const MAX_NAMES = 65_536;
/** The most characters of all names in `types`: they are kept with the upload. */
const MAX_COLUMN_NAMES = 65_536;

/** What POST /uploads takes; the parser's parameters stand beside. */
export const newUpload = (longest: number) =>
  z
    .looseObject({
      mid: z.string(),
      input: z.boolean(),
      parser: z
        .string()
        .transform(ourParserName)
        .refine(isParserName, `must be one of ${Object.keys(PARSERS).join(', ')}`)
        .meta({
          description:
            'See GET /configuration/parsers; its parameters stand beside it. `slycat-csv-parser` means csv, and so on.',
        }),
      aids: z
        .array(artifactName(longest))
        .min(1)
        .max(MAX_FILES)
        .refine(names => new Set(names).size === names.length, 'must all be different')
        .refine(
          names => names.reduce((sum, { length }) => sum + length, 0) <= MAX_NAMES,
          `must have at most ${MAX_NAMES} characters together`,
        ),
    })
    .meta({ id: 'NewUpload' });

/** The parameters of a new upload. */
export const newParameters = (stored: z.ZodObject) =>
  stored
    .refine(({ types }) => Object.keys(types ?? {}).join('').length <= MAX_COLUMN_NAMES, {
      message: `must have names of at most ${MAX_COLUMN_NAMES} characters together`,
      path: ['types'],
    })
    .refine(({ delimiter, quote = '"' }) => delimiter !== quote, {
      message: 'must be another character than "quote", which is " by default',
      path: ['delimiter'],
    })
    .refine(({ delimiter, quote = '"', comment }) => ![delimiter ?? '', quote].includes(comment), {
      message: 'must be another character than "delimiter" and "quote"',
      path: ['comment'],
    });

type NewUpload = z.output<ReturnType<typeof newUpload>>;

/** Begins an upload into a model that the user may write; its id. `tus`: its bytes come through tus. */
export async function beginUpload(
  api: ApiContext,
  owner: string,
  { mid, input, parser, aids, ...rest }: NewUpload,
  tus?: TusUpload,
): Promise<string> {
  const definition = PARSERS[parser as ParserName];
  const parameters = parseInput(rest, newParameters(definition.parameters));
  const uid = newId();
  await api.freeSpace.assertFree();
  await api.database.db.transaction(async tx => {
    await lockUser(tx, owner);
    const { model } = await lockModel(tx, mid, { username: owner, role: 'writer' });
    await refuseOtherKind(tx, { mid, aids, makes: definition.makes });
    await refuseTooMany(api, tx, owner);
    await tx
      .insert(uploads)
      .values({ uid, owner, model: model.mid, parser, parameters, aids, input, tus });
  });
  return uid;
}

/** Throws `conflict` for an upload whose bytes come through tus, which counts and finishes by itself. */
export function assertPartsAreSent({ upload }: { upload: UploadRow }): void {
  if (upload.tus === null) return;
  throw conflict(
    'the bytes of this upload come through tus.',
    `PATCH /api/tus/${upload.uid}, from the offset that HEAD tells.`,
  );
}

async function refuseOtherKind(
  tx: Tx,
  {
    mid,
    aids,
    makes,
  }: { mid: string; aids: string[]; makes: (typeof PARSERS)[ParserName]['makes'] },
): Promise<void> {
  if (makes === 'any') return;
  const [other] = await tx
    .select({ aid: artifacts.aid, kind: artifacts.kind })
    .from(artifacts)
    .where(and(eq(artifacts.model, mid), inArray(artifacts.aid, aids), ne(artifacts.kind, makes)))
    .limit(1);
  if (!other) return;
  throw conflict(
    `the artifact ${other.aid} of this model is ${withArticle(other.kind)}, and this parser makes ${withArticle(makes)}.`,
    `Choose another name, or DELETE /api/models/(mid)/${other.kind}s/(aid) first.`,
  );
}

async function refuseTooMany({ config }: ApiContext, tx: Tx, owner: string): Promise<void> {
  const limit = config.LIMIT_UPLOADS;
  if (limit === 0) return;
  const [open] = await tx
    .select({ n: count() })
    .from(uploads)
    // Uploads into projects that were deleted, or that the owner is no member of any more, do not count: nobody can end
    // them, and upkeep does.
    .innerJoin(models, eq(models.mid, uploads.model))
    .innerJoin(projects, and(eq(projects.pid, models.project), isNull(projects.deleted)))
    .innerJoin(members, and(eq(members.project, projects.pid), eq(members.username, owner)))
    .where(and(eq(uploads.owner, owner), isNull(uploads.job)));
  if ((open?.n ?? 0) < limit) return;
  throw new WindlassError('too_many_requests', {
    detail: `You have ${limit} open uploads, which is the limit.`,
    hint: 'Finish some, or end them with DELETE /api/uploads/(uid). LIMIT_UPLOADS sets the limit.',
    headers: { 'Retry-After': '60' },
  });
}

import { eq } from 'drizzle-orm';
import {
  models,
  projects,
  type SkippedRows,
  type UploadRow,
  uploads,
} from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { assertOwnStore } from '../../shared/installation/store-marker.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { isParserName, PARSERS, type ParserName } from '../../shared/uploads/parsers.ts';
import type { Handler, JobContext } from '../context.ts';
import blob from '../parsers/blob.ts';
import { convertFile } from '../parsers/convert-file.ts';
import { KeptStatistics } from '../parsers/kept-statistics.ts';
import type { MadeArtifact, Parser } from '../parsers/parser.ts';
import { type PromotedArtifact, promoteArtifacts } from '../parsers/promote-artifacts.ts';
import { DamagedPart } from '../parsers/read-part.ts';
import { describeSentFiles } from '../parsers/sent-files.ts';
import { MAX_PROBLEMS, TableError } from '../parsers/table/protocol.ts';
import { listUploadedFiles, type UploadedFile } from '../parsers/upload-files.ts';

/** Limit of artifacts in the result; the model lists all of them, page by page. */
const MAX_NAMED = 1_000;

/**
 * Makes a finished upload into artifacts of its model, all at the job's end or none. After a lost worker it starts
 * over; the parts stay until the job ends.
 */
const parse: Handler<'parse'> = async context => {
  const { worker, payload } = context;
  const [row] = await worker.database.db
    .select({ upload: uploads, project: models.project })
    .from(uploads)
    .innerJoin(models, eq(models.mid, uploads.model))
    .innerJoin(projects, eq(projects.pid, models.project))
    .where(eq(uploads.uid, payload.upload));
  if (!row)
    throw new WindlassError('conflict', {
      detail: 'the upload or its model was deleted meanwhile.',
      hint: 'Make a new upload for another model.',
    });
  const files = await listUploadedFiles(worker.database.db, row.upload.uid);
  checkCount(row.upload, files);
  const sent = await describeSentFiles(worker.database.db, row.upload.uid);
  /** The objects that the parsers store. One that is also a part stays, like the upload. */
  const keys: string[] = [];
  const { made, skipped } = await parseFiles(context, row.upload, { files, keys }).catch(
    async (error: unknown) => {
      // Nothing refers to what was made of earlier files.
      for (const key of keys) await worker.objects.remove(key).catch(() => {});
      throw error;
    },
  );
  return {
    result: {
      artifacts: made.slice(0, MAX_NAMED).map(({ aid, kind, size }) => ({ aid, kind, size })),
      count: made.length,
      files: sent,
    },
    promote: tx =>
      promoteArtifacts(tx, {
        upload: row.upload,
        project: row.project,
        made,
        skipped: skipped.count > 0 ? skipped : undefined,
        limits: worker.config,
      }),
    stored: keys,
  };
};

export default parse;

async function parseFiles(
  context: JobContext<'parse'>,
  upload: UploadRow,
  { files, keys }: { files: UploadedFile[]; keys: string[] },
): Promise<{ made: PromotedArtifact[]; skipped: SkippedRows }> {
  if (!isParserName(upload.parser))
    throw new WindlassError('parse_failed', {
      detail: `there is no parser ${upload.parser} any more.`,
      hint: 'GET /api/configuration/parsers lists them.',
    });
  const parser = findParser(upload.parser);
  const parameters = PARSERS[upload.parser].parameters.parse(upload.parameters);
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const made: PromotedArtifact[] = [];
  const statistics = new KeptStatistics();
  const names = new Set<string>();
  const skipped: SkippedRows = { count: 0, errors: [] };
  let done = 0;
  for (const [i, file] of files.entries()) {
    const aid = upload.aids[i] ?? '';
    const artifacts = await parser(file, {
      job: context,
      upload: upload.uid,
      parameters,
      aid,
      newKey: () => {
        const key = newObjectKey('artifacts', upload.model);
        keys.push(key);
        return key;
      },
      reportProgress: (share, message) =>
        context.progress((done + file.size * share) / Math.max(1, total), message),
    }).catch(async (error: unknown) => {
      if (error instanceof DamagedPart)
        await reportDamage(context, { upload: upload.uid, damage: error });
      throw error instanceof TableError ? explain(error, { aid, file: file.file }) : error;
    });
    for (const [n, artifact] of artifacts.entries()) {
      if (names.has(artifact.aid)) throw twice(artifact.aid);
      names.add(artifact.aid);
      const { columns, skipped: left, ...others } = artifact;
      addSkipped(skipped, file.file, left);
      const room = artifacts.length - n + (files.length - i - 1);
      const packed = columns && (await statistics.keep(columns, room));
      made.push({ ...others, madeOf: aid, columns: packed });
    }
    done += file.size;
  }
  return { made, skipped };
}

/** In another store every part is missing: that is an outage, which the parse waits for. */
async function reportDamage(
  { worker, log }: JobContext<'parse'>,
  { upload, damage }: { upload: string; damage: DamagedPart },
): Promise<void> {
  await assertOwnStore(worker.database.db, worker.objects);
  const { object, message } = damage;
  log.error(
    { upload, object, reason: message },
    'the object store has lost or changed a part of an upload',
  );
}

/** One would silently replace the other. */
function twice(aid: string): WindlassError {
  return new WindlassError('parse_failed', {
    detail: `two of its artifacts would be named ${aid}.`,
    hint: 'Choose other names in "aids", or rename what is in the file.',
  });
}

/** Its parameters have been parsed by the schema of the same name. */
function findParser(name: ParserName): Parser<ParserName> {
  return (name === 'blob' ? blob : convertFile(name)) as Parser<ParserName>;
}

function addSkipped(
  all: SkippedRows,
  file: number,
  { count, problems }: NonNullable<MadeArtifact['skipped']> = { count: 0, problems: [] },
): void {
  all.count += count;
  const room = MAX_PROBLEMS - all.errors.length;
  all.errors.push(...problems.slice(0, room).map(problem => ({ file, ...problem })));
}

/** Files are numbered from 0 without gaps, which `finished` has seen to. */
function checkCount({ aids }: UploadRow, files: UploadedFile[]): void {
  if (files.length === aids.length) return;
  throw new WindlassError('parse_failed', {
    detail: `it has ${count(files.length, 'file')} and ${count(aids.length, 'artifact name')} in "aids".`,
    hint: 'Make an upload with one name for each file.',
  });
}

const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`;

/** The file by its number and its artifact, each problem by its place. */
function explain(
  { problems, count, hint, message }: TableError,
  { aid, file }: { aid: string; file: number },
): WindlassError {
  const [first] = problems;
  const place = [
    first?.row === undefined ? '' : `, line ${first.row}`,
    first?.column === undefined ? '' : `, column ${first.column.slice(0, 100)}`,
  ].join('');
  const more = count > 1 ? ` (and ${(count - 1).toLocaleString('en')} more)` : '';
  return new WindlassError('parse_failed', {
    detail: `file ${file} (${aid})${place}: ${message}${more}.`,
    hint,
    extra: { errors: problems.map(problem => ({ file, ...problem })), count },
  });
}

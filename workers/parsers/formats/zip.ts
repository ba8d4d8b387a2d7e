import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findParserOf, PARSERS, type ParserParameters } from '../../../shared/uploads/parsers.ts';
import { boundExpansion, largestExpansion } from '../expand/bound-expansion.ts';
import { readFile } from '../read-file.ts';
import {
  type FileRequest,
  type MadeFile,
  type Reader,
  TableError,
  type TableProblem,
} from '../table/protocol.ts';
import { inMember, type Member, openZip } from '../zip/open-zip.ts';

/**
 * Converts each file of an archive by the parser of its name, or keeps it as it is. Inner archives are kept, because
 * their expansion would be unbounded.
 */
const zip: Reader<'zip'> = async (request, onProgress) => {
  const { size } = await stat(request.input);
  const bounds = { compressed: size, limit: request.expanded };
  const limit = largestExpansion(bounds);
  const bound = boundExpansion(bounds);
  const { members, extract, close } = await openZip(request.input, bound);
  if (members.length === 0) throw new TableError({ reason: 'there is no file in it' });
  const made: MadeFile[] = [];
  /** Total bytes so far, including files that were compressed again in the archive. */
  let expanded = 0;
  for (const [i, member] of members.entries()) {
    const scratch = join(request.scratch, `member-${i}`);
    await mkdir(scratch, { mode: 0o700 });
    const input = join(scratch, 'file');
    await extract(member, input);
    expanded += (await stat(input)).size;
    const files = await readMember(
      { ...request, scratch, input, output: join(scratch, 'table'), expanded: limit - expanded },
      { member, onProgress: share => onProgress((i + share) / members.length) },
    );
    expanded += (await stat(join(scratch, 'expanded')).catch(() => ({ size: 0 }))).size;
    made.push(...files);
    if (!files.some(({ path }) => path === input)) await rm(input);
    await rm(join(scratch, 'expanded'), { force: true });
  }
  close();
  return made;
};

export default zip;

interface Reading {
  member: Member;
  onProgress(share: number): void;
}

const TAB_SEPARATED = /\.tsv(?:\.(?:gz|zst))?$/i;

async function readMember(
  request: FileRequest<'zip'>,
  { member: { name }, onProgress }: Reading,
): Promise<MadeFile[]> {
  const parser = findParserOf(name);
  if (!parser || parser === 'zip') return [{ name, kind: 'file', path: request.input }];
  try {
    const parameters =
      parser === 'csv' ? parametersOf(name, request) : PARSERS[parser].parameters.parse({});
    const files = await readFile({ ...request, parser, parameters }, onProgress);
    return files.map(({ skipped, ...file }) => ({
      ...file,
      name: file.name ? `${name}/${file.name}` : name,
      ...(skipped ? { skipped: { ...skipped, problems: placed(name, skipped.problems) } } : {}),
    }));
  } catch (error) {
    if (!(error instanceof TableError)) throw error;
    const { problems, count, hint } = error;
    const [first = { reason: inMember(name, error.message).message }] = placed(name, problems);
    throw new TableError({ ...first, hint }, { problems: placed(name, problems), count });
  }
}

/** The parameters of a CSV file in the archive: those that were asked for, with the delimiter that its name says, if any. */
const parametersOf = (name: string, { parameters }: FileRequest<'zip'>): ParserParameters<'csv'> =>
  TAB_SEPARATED.test(name) ? { ...parameters, delimiter: '\t' } : parameters;

const placed = (name: string, problems: TableProblem[]) =>
  problems.map(problem => ({ ...problem, reason: inMember(name, problem.reason).message }));

import { unwrap } from '../../clients/typescript/src/api.ts';
import { WindlassError } from '../../clients/typescript/src/error.ts';
import type { RowsOptions } from '../../clients/typescript/src/rows.ts';
import { strongTag } from '../../clients/typescript/src/strong-tag.ts';
import type { Windlass } from '../../clients/typescript/src/windlass.ts';
import { CommandError } from '../command-error.ts';

/** The most rows of one answer. */
const ANSWER_ROWS = 1_000_000;

interface Table {
  mid: string;
  aid: string;
}
type Query = Omit<RowsOptions, 'signal'>;

interface Range {
  view: Query;
  offset: number;
  end: number;
  /** Rows of the view. */
  total: number;
}

/** The bytes of one CSV with the rows from `offset` on, up to `end`, of as many answers as they need. */
export async function* readCsv(
  windlass: Windlass,
  table: Table,
  { view, offset, end, total }: Range,
): AsyncGenerator<Uint8Array> {
  let tag: string | undefined;
  let head = 0;
  const askFor = async (at: number, limit: number) => {
    const answer = await ask(windlass, table, { ...view, offset: at, limit }, tag);
    tag = answer.tag;
    return answer.bytes;
  };
  // After its last row there are the names of the columns alone.
  if (offset >= end) yield* await askFor(total, 1);
  for (let at = offset; at < end; at += ANSWER_ROWS) {
    const bytes = await askFor(at, Math.min(ANSWER_ROWS, end - at));
    yield* at === offset ? bytes : withoutFirst(bytes, head);
    if (at === offset && at + ANSWER_ROWS < end)
      for await (const piece of await askFor(total, 1)) head += piece.length;
  }
}

async function ask(
  windlass: Windlass,
  table: Table,
  query: Query,
  tag: string | undefined,
): Promise<{ bytes: AsyncIterable<Uint8Array>; tag: string | undefined }> {
  for (;;) {
    const asked = windlass.api.GET('/api/models/{mid}/tables/{aid}/rows', {
      params: { path: table, query, header: { 'If-Match': tag } },
      headers: { Accept: 'text/csv' },
      parseAs: 'stream',
    });
    const bytes = await unwrap<unknown>(asked).catch((error: unknown) => {
      throw error instanceof WindlassError && error.status === 412 ? changed(table) : error;
    });
    const { status, headers } = (await asked).response;
    if (status === 200)
      return { bytes: bytes as AsyncIterable<Uint8Array>, tag: strongTag(headers.get('ETag')) };
    // 202: the view was removed just now, and is made again.
    await windlass.rowsPage(table.mid, table.aid, { ...query, limit: 1 });
  }
}

async function* withoutFirst(
  pieces: AsyncIterable<Uint8Array>,
  count: number,
): AsyncGenerator<Uint8Array> {
  let left = count;
  for await (const piece of pieces) {
    if (left < piece.length) yield piece.subarray(left);
    left = Math.max(0, left - piece.length);
  }
}

const changed = ({ aid }: Table) =>
  new CommandError(`Another table has taken the place of ${aid} while it was read.`, {
    hint: 'Read it again from its beginning.',
  });

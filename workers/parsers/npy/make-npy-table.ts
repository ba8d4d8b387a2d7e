import { type CsvPiece, joinCells, makeTypedTable } from '../cells/make-typed-table.ts';
import type { FileRequest, MadeFile } from '../table/protocol.ts';
import { type Field, integerReader } from './fields.ts';
import { readRecords } from './read-records.ts';

interface Records {
  fields: Field[];
  /** Bytes of a record. */
  size: number;
  count: number;
  /** The offset of the first record. */
  offset: number;
}

/** Makes a table of records, or of plain values, which are records of one field. */
export async function makeNpyTable(
  request: FileRequest,
  records: Records,
  onProgress: (share: number) => void,
): Promise<MadeFile> {
  const { fields, size, count, offset } = records;
  const columns = await findWide(request.input, records);
  async function* pieces(): AsyncGenerator<CsvPiece> {
    let row = 0;
    for await (const bytes of readRecords(request.input, { offset, size })) {
      const lines: string[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        row++;
        const cells = fields.map(field => field.write(bytes, at + field.at, row));
        lines.push(joinCells(cells, row));
      }
      yield { text: lines.join(''), rows: lines.length };
    }
  }
  const table = await makeTypedTable(request, { columns, pieces: pieces(), count, onProgress });
  return { name: '', kind: 'table', path: request.output, ...table };
}

/** The columns; those with unsigned integers beyond signed 64 bits hold texts, as for CSV. */
async function findWide(
  path: string,
  { fields, size, offset }: Records,
): Promise<Pick<Field, 'name' | 'type'>[]> {
  const wide = new Set<Field>();
  const unsigned = fields.filter(({ code }) => code.endsWith('u8'));
  if (unsigned.length > 0)
    for await (const bytes of readRecords(path, { offset, size }))
      for (const field of unsigned) {
        const read = integerReader('u8', field.code.startsWith('>'));
        for (let at = field.at; at < bytes.length; at += size)
          if (BigInt(read(bytes, at)) >= 2n ** 63n) wide.add(field);
      }
  return fields.map(field => ({
    name: field.name,
    type: wide.has(field) ? 'VARCHAR' : field.type,
  }));
}

import { type CsvPiece, joinCells, makeTypedTable } from '../cells/make-typed-table.ts';
import { integerReader } from '../npy/fields.ts';
import type { FileRequest, MadeFile } from '../table/protocol.ts';
import type { HdfField } from './columns.ts';
import type { Dataset } from './list-datasets.ts';
import type { Hdf5File } from './open-hdf5.ts';
import { readBlocks, stepOf } from './read-blocks.ts';

/** A dataset of one dimension, or a single value, with its columns. */
export interface TableDataset {
  dataset: Dataset;
  fields: HdfField[];
}

interface Tables {
  file: Hdf5File;
  datasets: TableDataset[];
  count: number;
  onProgress(share: number): void;
}

/** Makes a table of datasets side by side, all of the same length. */
export async function makeHdf5Table(
  request: FileRequest,
  { file, datasets, count, onProgress }: Tables,
): Promise<MadeFile> {
  const columns = datasets.flatMap(one =>
    one.fields.map(field => ({
      name: field.name,
      type: isWide(file, one.dataset, field) ? ('VARCHAR' as const) : field.type,
      unit: one.dataset.unit,
    })),
  );
  const inner = datasets.reduce((sum, { dataset }) => sum + dataset.metadata.size, 0);
  const chunk = Math.max(...datasets.map(({ dataset }) => dataset.metadata.chunks?.[0] ?? 1));
  const step = stepOf(Math.max(1, count), { inner: Math.max(1, inner), chunk });
  async function* pieces(): AsyncGenerator<CsvPiece> {
    for (let from = 0; from < count; from += step) {
      const length = Math.min(step, count - from);
      const values = datasets.map(({ dataset, fields }) => {
        const { path, metadata, shape } = dataset;
        const place = shape.length === 0 ? [[], []] : [[from], [length]];
        const [first = [], number = []] = place;
        const block = file.read(path, { metadata, from: first, count: number });
        return (i: number) =>
          fields.map(field => {
            const row = from + i + 1;
            const text = block.texts?.[i];
            return text
              ? field.write(text, 0, row)
              : field.write(block.bytes, i * metadata.size + field.at, row);
          });
      });
      let lines: string[] = [];
      for (let i = 0; i < length; i++) {
        lines.push(
          joinCells(
            values.flatMap(cells => cells(i)),
            from + i + 1,
          ),
        );
        if (lines.length < 1_000 && i < length - 1) continue;
        yield { text: lines.join(''), rows: lines.length };
        lines = [];
      }
    }
  }
  const table = await makeTypedTable(request, { columns, pieces: pieces(), count, onProgress });
  return { name: '', kind: 'table', path: request.output, ...table };
}

/** Whether a column has unsigned integers beyond signed 64 bits; it then holds texts, as for CSV. */
function isWide(file: Hdf5File, dataset: Dataset, { code, at }: HdfField): boolean {
  if (!code?.endsWith('u8')) return false;
  const read = integerReader('u8', code.startsWith('>'));
  for (const bytes of readBlocks(file, dataset))
    for (let from = at; from < bytes.length; from += dataset.metadata.size)
      if (BigInt(read(bytes, from)) >= 2n ** 63n) return true;
  return false;
}

import { type CsvPiece, joinCells, makeTypedTable } from '../cells/make-typed-table.ts';
import { integerReader } from '../npy/fields.ts';
import {
  type FileRequest,
  type MadeFile,
  TableError,
  type TableProblem,
} from '../table/protocol.ts';
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
  const columns = datasets.flatMap(({ dataset, fields }) => {
    const wide = findWide(file, dataset, fields);
    return fields.map(field => ({
      name: field.name,
      type: wide.has(field) ? ('VARCHAR' as const) : field.type,
      unit: dataset.unit,
    }));
  });
  const step = rowsAtOnce(datasets, count);
  async function* pieces(): AsyncGenerator<CsvPiece> {
    for (let from = 0; from < count; from += step) {
      const length = Math.min(step, count - from);
      const values = datasets.map(one => readCells(file, one, { from, length }));
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

/** How many rows of these datasets are read at once. */
function rowsAtOnce(datasets: TableDataset[], count: number): number {
  const inner = datasets.reduce((sum, { dataset }) => sum + dataset.metadata.size, 0);
  const chunk = Math.max(...datasets.map(({ dataset }) => dataset.metadata.chunks?.[0] ?? 1));
  return stepOf(Math.max(1, count), { inner: Math.max(1, inner), chunk });
}

/** Reads rows of a dataset; the function writes the cells of the one with this index among them. */
function readCells(
  file: Hdf5File,
  { dataset: { path, metadata, shape }, fields }: TableDataset,
  { from, length }: { from: number; length: number },
): (i: number) => string[] {
  const [first = [], number = []] = shape.length === 0 ? [[], []] : [[from], [length]];
  const textsAt = fields.flatMap(({ isVariable, at }) => (isVariable ? [at] : []));
  const block = file.read(path, { metadata, from: first, count: number, textsAt });
  return i =>
    fields.map(field => {
      const row = from + i + 1;
      const text = block.texts.get(field.at)?.[i];
      return text
        ? field.write(text, 0, row)
        : field.write(block.bytes, i * metadata.size + field.at, row);
    });
}

/** The first text of a dataset that no table can have, if there is one. */
export function findBadText(
  file: Hdf5File,
  one: TableDataset,
  count: number,
): TableProblem | undefined {
  // The others are numbers.
  if (!one.fields.some(({ code }) => code === undefined)) return undefined;
  const step = rowsAtOnce([one], count);
  for (let from = 0; from < count; from += step) {
    const length = Math.min(step, count - from);
    const cells = readCells(file, one, { from, length });
    try {
      for (let i = 0; i < length; i++) cells(i);
    } catch (error) {
      if (error instanceof TableError) return error.problems[0];
      throw error;
    }
  }
  return undefined;
}

/** The fields with unsigned integers beyond signed 64 bits; their columns hold texts, as for CSV. */
function findWide(file: Hdf5File, dataset: Dataset, fields: HdfField[]): Set<HdfField> {
  const found = new Set<HdfField>();
  const candidates = fields.flatMap(field =>
    field.code?.endsWith('u8')
      ? [{ field, read: integerReader('u8', field.code.startsWith('>')) }]
      : [],
  );
  if (candidates.length === 0) return found;
  for (const bytes of readBlocks(file, dataset))
    for (const { field, read } of candidates)
      for (let at = field.at; at < bytes.length && !found.has(field); at += dataset.metadata.size)
        if (BigInt(read(bytes, at)) >= 2n ** 63n) found.add(field);
  return found;
}

import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ARRAY_TYPES, type ArrayType } from '../../../shared/arrays/npy-header.ts';
import { MAX_COLUMNS } from '../csv/dialect.ts';
import { largestExpansion, MAX_RATIO } from '../expand/bound-expansion.ts';
import { makeArray } from '../npy/make-array.ts';
import {
  type FileRequest,
  MAX_PROBLEMS,
  type MadeFile,
  TableError,
  type TableProblem,
} from '../table/protocol.ts';
import { codeOf, fieldsOf, isRecord, isText } from './columns.ts';
import { type Dataset, leftOut, listDatasets } from './list-datasets.ts';
import { findBadText, makeHdf5Table, type TableDataset } from './make-table.ts';
import { type Hdf5File, openHdf5 } from './open-hdf5.ts';
import { readBoxes } from './read-blocks.ts';

interface TablePlan {
  name: string;
  datasets: TableDataset[];
  count: number;
}

interface Plan {
  tables: TablePlan[];
  arrays: { dataset: Dataset; descr: ArrayType }[];
  problems: TableProblem[];
}

/** Makes tables of a file's one-dimensional datasets and arrays of others; lists those that are neither. */
export async function makeHdf5Artifacts(
  request: FileRequest,
  onProgress: (share: number) => void,
): Promise<MadeFile[]> {
  const file = await openHdf5(request.input);
  try {
    const datasets = listDatasets(file);
    const { tables, arrays, problems } = planArtifacts(file, datasets);
    await checkSize(request, [
      ...arrays.map(({ dataset }) => dataset),
      ...tables.flatMap(table => table.datasets.map(({ dataset }) => dataset)),
    ]);
    const made: MadeFile[] = [];
    const all = tables.length + arrays.length;
    const onOne = (share: number) => onProgress((made.length + share) / all);
    for (const { name, ...table } of tables) {
      const output = join(request.scratch, `table-${made.length}.parquet`);
      const one = await makeHdf5Table(
        { ...request, output },
        { file, ...table, onProgress: onOne },
      );
      made.push({ ...one, name });
      await rm(`${output}.csv`, { force: true });
    }
    for (const { dataset, descr } of arrays) {
      const { shape, unit, path } = dataset;
      const pieces = readBoxes(file, dataset);
      const output = join(request.scratch, `array-${made.length}.npy`);
      const one = await makeArray({ path: output, descr, shape, unit, pieces });
      made.push({ ...one, name: path.slice(1) });
      onOne(0);
    }
    const skipped = { count: problems.length, problems: problems.slice(0, MAX_PROBLEMS) };
    const [first, ...others] = made;
    if (!first)
      throw new TableError(
        problems[0] ?? { reason: 'there is no dataset with values in it' },
        problems.length > 0 ? skipped : undefined,
      );
    return problems.length === 0 ? made : [{ ...first, skipped }, ...others];
  } finally {
    file.close();
  }
}

function planArtifacts(file: Hdf5File, datasets: Dataset[]): Plan {
  const plan: Plan = { tables: [], arrays: [], problems: [] };
  const byGroup = new Map<string, Map<number, TableDataset[]>>();
  for (const dataset of datasets) {
    const { shape, metadata, name, group, path, filters } = dataset;
    const code = codeOf(metadata);
    const { fields, unread } = fieldsOf(metadata, name, file.plainMembers(path));
    if (metadata.virtual_sources || file.hasOtherFiles(path))
      plan.problems.push(leftOut(dataset, 'its values are in other files'));
    else if (filters.length > 0)
      plan.problems.push(
        leftOut(
          dataset,
          `it has the filter ${filters.join(', ').slice(0, 100)}, which is not read here; gzip is`,
        ),
      );
    else if (fields.length > 0 && shape.length !== 1 && code && code in ARRAY_TYPES)
      plan.arrays.push({ dataset, descr: code as ArrayType });
    else if (fields.length > 0 && shape.length > 1)
      plan.problems.push(leftOut(dataset, 'arrays hold numbers and booleans only'));
    else {
      plan.problems.push(...unread.map(({ why, field }) => leftOut(dataset, why, field)));
      if (fields.length === 0) continue;
      if (isRecord(metadata) || (shape.length === 0 && isText(metadata))) {
        const count = shape[0] ?? 1;
        plan.tables.push({ name: path.slice(1), datasets: [{ dataset, fields }], count });
        continue;
      }
      const lengths = byGroup.get(group) ?? new Map<number, TableDataset[]>();
      byGroup.set(group, lengths);
      const length = shape[0] ?? 0;
      lengths.set(length, [...(lengths.get(length) ?? []), { dataset, fields }]);
    }
  }
  // A group's own name comes before the same one with a length in it.
  const groups = [...byGroup].sort(([, a], [, b]) => Math.min(a.size, 2) - Math.min(b.size, 2));
  for (const [group, lengths] of groups)
    for (const [count, side] of lengths) {
      // Tables of different lengths have theirs in the name.
      const parts = [group, lengths.size > 1 ? String(count) : ''].filter(part => part !== '');
      plan.tables.push({ name: parts.join('/'), datasets: side, count });
    }
  return leaveOutTables(file, plan);
}

/** Leaves out what would refuse the whole file: tables without a name or with too many columns, and unreadable texts. */
function leaveOutTables(file: Hdf5File, { tables, arrays, problems }: Plan): Plan {
  const plan: Plan = { tables: [], arrays, problems: [...problems] };
  const names = new Set(arrays.map(({ dataset }) => dataset.path.slice(1)));
  for (const { name, datasets, count } of tables) {
    const leaveOut = (why: string) =>
      plan.problems.push(...datasets.map(({ dataset }) => leftOut(dataset, why)));
    const columns = datasets.reduce((sum, { fields }) => sum + fields.length, 0);
    if (names.has(name)) leaveOut(`its table would be named ${name}, as another artifact is`);
    else if (columns > MAX_COLUMNS)
      leaveOut(
        `its table would have ${columns.toLocaleString('en')} columns, and at most ${MAX_COLUMNS.toLocaleString('en')} can be kept`,
      );
    else {
      const kept = datasets.filter(one => {
        const bad = findBadText(file, one, count);
        if (bad) plan.problems.push({ ...leftOut(one.dataset, bad.reason), row: bad.row });
        return !bad;
      });
      if (kept.length > 0) plan.tables.push({ name, datasets: kept, count });
      names.add(name);
    }
  }
  return plan;
}

/** A dataset may claim any size while holding nothing but its fill value. */
async function checkSize({ input, expanded }: FileRequest, datasets: Dataset[]): Promise<void> {
  const limit = largestExpansion({ compressed: (await stat(input)).size, limit: expanded });
  const bytes = datasets.reduce(
    (sum, { shape, metadata }) =>
      sum + shape.reduce((product, length) => product * length, 1) * metadata.size,
    0,
  );
  if (bytes > limit)
    throw new TableError({
      reason: `the datasets have ${bytes} bytes, and at most ${limit} are read: LIMIT_EXPANDED_BYTES, and ${MAX_RATIO.toLocaleString('en')} times the file`,
      hint: 'Leave out datasets that are nearly empty, or split the file.',
    });
}

import type { Metadata } from 'h5wasm';
import { TableError, type TableProblem } from '../table/protocol.ts';
import type { Hdf5File } from './open-hdf5.ts';

export interface Dataset {
  path: string;
  /** The path of its group, without slashes at its ends. */
  group: string;
  name: string;
  metadata: Metadata;
  shape: number[];
  unit?: string;
  /** Filters that only a plug-in reads. */
  filters: string[];
}

const MAX_DEPTH = 32;
const MAX_OBJECTS = 10_000;
/** netCDF also makes datasets for dimensions without values; those are no variables. */
const NO_VARIABLE = /^This is a netCDF dimension but not a netCDF variable/;
const MAX_UNIT = 200;

/** All datasets with values. Soft and external links are skipped, because their targets are elsewhere. */
export function listDatasets(file: Hdf5File): Dataset[] {
  const found: Dataset[] = [];
  let objects = 0;
  const visit = (group: string, outer: string[] = []) => {
    // A hard link leads back to a group that this one lies in.
    const address = file.addressOf(`/${group}`);
    if (outer.includes(address)) return;
    const depth = outer.length;
    if (depth > MAX_DEPTH)
      throw new TableError({ reason: `there are more than ${MAX_DEPTH} groups in each other` });
    for (const name of file.names(`/${group}`)) {
      const path = group === '' ? name : `${group}/${name}`;
      if (++objects > MAX_OBJECTS)
        throw new TableError({
          reason: `there are more than ${MAX_OBJECTS.toLocaleString('en')} groups and datasets in it`,
          hint: 'Split the file.',
        });
      const kind = file.kindOf(`/${path}`);
      if (kind === 'group') visit(path, [...outer, address]);
      if (kind !== 'dataset') continue;
      const metadata = file.describe(`/${path}`);
      const { shape } = metadata;
      if (!shape || NO_VARIABLE.test(file.attribute(`/${path}`, 'NAME') ?? '')) continue;
      const unit = file.attribute(`/${path}`, 'units') ?? file.attribute(`/${path}`, 'unit') ?? '';
      const isUnit = unit !== '' && unit.length <= MAX_UNIT && !/[\0\p{Surrogate}]/u.test(unit);
      found.push({
        path: `/${path}`,
        group,
        name,
        metadata,
        shape: shape.map(Number),
        filters: file.foreignFilters(`/${path}`),
        ...(isUnit ? { unit } : {}),
      });
    }
  };
  visit('');
  return found;
}

/** What a dataset, or a field of its records, is not kept for. */
export const leftOut = (dataset: Dataset, why: string, field?: string): TableProblem => ({
  column: cut(dataset.path.slice(1), 999),
  reason: `the ${field === undefined ? 'dataset' : `field ${cut(field, 200)}`} is left out: ${why}`,
});

/** Half a character could not be stored. */
const cut = (text: string, length: number) => text.slice(0, length).replace(/\p{Surrogate}/u, '');

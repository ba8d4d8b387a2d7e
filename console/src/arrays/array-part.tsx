import type { ModelPartProps } from '../projects/model-part.ts';
import { type ArrayKey, useArray, useSlice } from '../service/arrays.ts';
import { artifactPath, downloadName } from '../service/models.ts';
import { apiPath } from '../service/place.ts';
import { Button } from '../ui/button.tsx';
import { DownloadIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { TableBox } from '../ui/table-box.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Wait } from '../ui/wait.tsx';
import { firstOf, layPart } from './lay-part.ts';

/** So many rows and columns are shown. */
const ROWS = 50;
const COLUMNS = 20;

/** An array of a model: its shape, and a part of its values. */
export function ArrayPart({ model, name = '' }: ModelPartProps) {
  const { data, error } = useArray(model.id, name);
  const [search, change] = useAddress();
  const artifact = { aid: name, type: 'array' as const };
  return (
    <>
      <div class="page-head">
        <h1 class="ellipsis" title={name}>
          {name}
        </h1>
        <a
          class="button"
          href={apiPath(artifactPath(model.id, artifact))}
          download={downloadName(artifact)}
        >
          <DownloadIcon />
          NumPy
        </a>
      </div>
      {error && <Problem error={error} />}
      {!data && !error && <Wait>Asking for the array …</Wait>}
      {data && (
        <>
          <p class="muted">
            {data.record.shape.join(' × ')} of type {data.record.type}
            {data.record.unit && ` in ${data.record.unit}`}, from {String(data.record.min)} to{' '}
            {String(data.record.max)}
          </p>
          <SliceForm
            key={search.get('slice')}
            slice={search.get('slice') ?? firstSlice(data.record.shape)}
            onChange={slice => change({ slice })}
          />
          <Slice
            array={{ mid: model.id, aid: name, tag: data.tag }}
            shape={data.record.shape}
            slice={search.get('slice') ?? firstSlice(data.record.shape)}
          />
        </>
      )}
    </>
  );
}

/** The beginning of the last two dimensions, at the first place of all others. */
function firstSlice(shape: number[]): string {
  const most = [ROWS, COLUMNS];
  return shape
    .map((size, n) => {
      const limit = most[n - (shape.length - 2)];
      // A dimension of size 0 has no first place.
      if (limit === undefined) return size === 0 ? ':' : '0';
      return `0:${Math.min(size, limit)}`;
    })
    .join(',');
}

function SliceForm({ slice, onChange }: { slice: string; onChange: (slice: string) => void }) {
  return (
    <form
      class="row"
      onSubmit={event => {
        event.preventDefault();
        onChange(String(new FormData(event.currentTarget).get('slice')));
      }}
    >
      <label class="row">
        <span>Part</span>
        <input class="input short mono" name="slice" defaultValue={slice} />
      </label>
      <Button type="submit">Show</Button>
      <span class="muted">Of each dimension an index or a range, as in NumPy: 0:10,5</span>
    </form>
  );
}

interface SliceProps {
  array: ArrayKey;
  /** The shape of the whole array. */
  shape: number[];
  slice: string;
}

function Slice({ array, shape: whole, slice }: SliceProps) {
  const { data, error } = useSlice(array, slice);
  if (error) return <Problem error={error} />;
  if (!data) return <Wait>Reading the values …</Wait>;
  const { shape, values } = data;
  const { rows, columns, rowName, columnName } = layPart(shape, firstOf(slice, whole));
  const isCut = rows > ROWS || columns > COLUMNS;
  const range = (count: number) => Array.from({ length: count }, (_, n) => n);
  const shownColumns = range(Math.min(columns, COLUMNS));
  return (
    <div class="card">
      <TableBox label="Values">
        <table class="plain">
          {columnName && (
            <thead>
              <tr>
                <th scope="col" class="numbers">
                  Index
                </th>
                {shownColumns.map(column => (
                  <th key={column} scope="col" class="numbers">
                    {columnName(column)}
                  </th>
                ))}
              </tr>
            </thead>
          )}
          <tbody>
            {range(Math.min(rows, ROWS)).map(row => (
              <tr key={row}>
                {rowName && (
                  <th scope="row" class="numbers">
                    {rowName(row)}
                  </th>
                )}
                {shownColumns.map(column => (
                  <td key={column} class="numbers">
                    {String(values[row * columns + column])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </TableBox>
      {isCut && (
        <p class="card-body muted">
          These are the first of {shape.join(' × ')} values. Ask for a smaller part, or download it.
        </p>
      )}
    </div>
  );
}

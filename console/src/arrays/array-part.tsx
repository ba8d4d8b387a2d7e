import type { ModelPartProps } from '../projects/model-part.ts';
import { useArray, useSlice } from '../service/arrays.ts';
import { artifactPath, downloadName } from '../service/models.ts';
import { apiPath } from '../service/place.ts';
import { Button } from '../ui/button.tsx';
import { DownloadIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { TableBox } from '../ui/table-box.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Wait } from '../ui/wait.tsx';

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
            {data.shape.join(' × ')} of type {data.type}
            {data.unit && ` in ${data.unit}`}, from {String(data.min)} to {String(data.max)}
          </p>
          <SliceForm
            key={search.get('slice')}
            slice={search.get('slice') ?? firstSlice(data.shape)}
            onChange={slice => change({ slice })}
          />
          <Slice mid={model.id} aid={name} slice={search.get('slice') ?? firstSlice(data.shape)} />
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
      // There is no first place where there is none.
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

function Slice({ mid, aid, slice }: { mid: string; aid: string; slice: string }) {
  const { data, error } = useSlice(mid, aid, slice);
  if (error) return <Problem error={error} />;
  if (!data) return <Wait>Reading the values …</Wait>;
  const { shape, values } = data;
  const width = shape.at(-1) ?? 1;
  const rows = Math.ceil(values.length / Math.max(1, width));
  const isCut = rows > ROWS || width > COLUMNS;
  return (
    <div class="card">
      <TableBox label="Values">
        <table class="plain">
          <tbody>
            {Array.from({ length: Math.min(rows, ROWS) }, (_, row) => (
              <tr key={row}>
                {values
                  .slice(row * width, row * width + Math.min(width, COLUMNS))
                  .map((value, column) => (
                    <td key={column} class="numbers">
                      {String(value)}
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

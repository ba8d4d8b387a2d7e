import { useState } from 'preact/hooks';
import { type Filter, PERIODS } from './job-filter.ts';
import { SelectFilter } from './select-filter.tsx';

const RANGE = 'range';

/** When jobs were created: a period up to now, or from one time to another. */
export function CreatedFilter({
  filter: { within, since, until },
  onChange,
}: {
  filter: Filter;
  onChange: (changes: Filter) => void;
}) {
  const [isRange, setRange] = useState(false);
  const shown = within ?? (isRange || since || until ? RANGE : undefined);
  const choose = (value: string) => {
    setRange(value === RANGE);
    onChange({ within: value === RANGE ? undefined : value, since: undefined, until: undefined });
  };
  const options = [...PERIODS].map(([value, { name }]) => [value, name] as const);
  return (
    <>
      <SelectFilter
        label="Created"
        all="Any time"
        value={shown}
        options={[...options, [RANGE, 'From … to …'] as const]}
        onChange={choose}
      />
      {shown === RANGE && (
        <span class="row range">
          {(['since', 'until'] as const).map(name => (
            <input
              key={name}
              class="input"
              type="datetime-local"
              aria-label={name === 'since' ? 'Created from' : 'Created before'}
              value={toLocal({ since, until }[name])}
              onChange={event => onChange({ [name]: toUtc(event.currentTarget.value) })}
            />
          ))}
        </span>
      )}
    </>
  );
}

/** As the field has it, in the user's zone. */
function toLocal(time: string | undefined): string {
  const at = Date.parse(time ?? '');
  if (Number.isNaN(at)) return '';
  const zone = new Date(at).getTimezoneOffset() * 60_000;
  return new Date(at - zone).toISOString().slice(0, 16);
}

const toUtc = (local: string): string | undefined =>
  local === '' ? undefined : new Date(local).toISOString().replace('.000', '');

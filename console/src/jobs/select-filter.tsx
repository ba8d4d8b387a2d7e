interface SelectFilterProps {
  label: string;
  /** The name of the option that filters nothing. */
  all: string;
  value: string | undefined;
  /** Values and their names. One that the address has is offered, too. */
  options: Iterable<readonly [value: string, name: string]>;
  onChange: (value: string) => void;
}

export function SelectFilter({ label, all, value = '', options, onChange }: SelectFilterProps) {
  const names = new Map(options);
  if (value !== '' && !names.has(value)) names.set(value, value);
  return (
    <select
      class="input"
      aria-label={label}
      data-set={value !== ''}
      value={value}
      onChange={event => onChange(event.currentTarget.value)}
    >
      <option value="">{all}</option>
      {[...names].map(([each, name]) => (
        <option key={each} value={each}>
          {name}
        </option>
      ))}
    </select>
  );
}

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Filter } from './job-filter.ts';

const TYPING_MS = 250;

interface SearchBoxProps {
  filter: Filter;
  /** Others' work is not looked into. */
  isOff: boolean;
  onChange: (changes: Filter) => void;
}

/** Asks once the user stops typing. What the address is changed to elsewhere stands in it, too. */
export function SearchBox({ filter, isOff, onChange }: SearchBoxProps) {
  const { by = 'label', search = '' } = filter;
  const [text, setText] = useState(search);
  const known = useRef(search);
  useEffect(() => {
    if (search !== known.current) {
      known.current = search;
      setText(search);
      return;
    }
    if (text === search) return;
    const timer = setTimeout(() => {
      known.current = text;
      onChange({ search: text });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, search, onChange]);
  const says = by === 'name' ? 'The whole name' : 'A part of the label';
  return (
    <search class="search" title={isOff ? 'Others’ work is not looked into' : undefined}>
      <select
        class="input"
        aria-label="Search by"
        disabled={isOff}
        value={by}
        onChange={event => onChange({ by: event.currentTarget.value })}
      >
        <option value="label">Label</option>
        <option value="name">Name</option>
      </select>
      <input
        class="input"
        type="search"
        aria-label={says}
        placeholder={isOff ? 'Not in others’ work' : says}
        disabled={isOff}
        value={isOff ? '' : text}
        onInput={event => setText(event.currentTarget.value)}
      />
    </search>
  );
}

import type { TargetedKeyboardEvent } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { More } from '../service/pages.ts';
import { findOptions, type Option } from './find-options.ts';
import { DownIcon } from './icons.tsx';
import { formatCount } from './numbers.ts';
import { usePositionBelow } from './use-position-below.ts';

interface ChoiceProps {
  label: string;
  /** The label is for screen readers alone. */
  isBare?: boolean;
  /** What stands below the field. */
  hint?: string;
  /** The field's name in a form. */
  name?: string;
  required?: boolean;
  autofocus?: boolean;
  /** Empty where nothing is chosen. */
  value: string;
  /** The name of `value`, where it is not among the options that were read so far. */
  valueName?: string;
  /** What choosing nothing is called, which is offered unless the field is required. */
  none?: string;
  options: readonly Option[];
  /** Where the options are a list of the service: it is read on until enough of it matches. */
  more?: More;
  onChange: (value: string) => void;
}

/** Options drawn at once. More are found by typing. */
const SHOWN = 100;
const PAGE = 10;
const NOT_CHOSEN = 'Choose one of the list.';

/** One of any number of things, found by a part of its name: an editable combobox with a listbox, as WAI-ARIA describes it. */
export function Choice(props: ChoiceProps) {
  const { label, isBare = false, required = false, none, options, more, onChange } = props;
  const { value, valueName } = props;
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const popup = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  /** Text that was typed and has led to no choice. */
  const [typed, setTyped] = useState<string>();
  const [active, setActive] = useState(-1);
  usePositionBelow({ popup, anchor: input, isOpen });

  const all = none === undefined || required ? options : [['', none] as const, ...options];
  const found = findOptions(all, typed ?? '');
  const shown = isOpen ? found.slice(0, SHOWN) : [];
  const nameOf = (wanted: string) => options.find(([each]) => each === wanted)?.[1];
  const chosen = value === '' ? '' : (nameOf(value) ?? valueName ?? value);

  /** Whether the field was left with such text. A form with it is not sent: the value may not be what is meant. */
  const isWrong = typed !== undefined && !isOpen;
  useLayoutEffect(() => {
    input.current?.setCustomValidity(typed === undefined ? '' : NOT_CHOSEN);
  }, [typed]);

  const isShort = isOpen && found.length < SHOWN;
  useEffect(() => {
    if (!isShort || !more?.hasNextPage) return;
    if (!more.isFetchingNextPage && !more.isFetchNextPageError) void more.fetchNextPage();
  }, [isShort, more]);
  useEffect(() => {
    popup.current?.querySelector('[data-active=true]')?.scrollIntoView({ block: 'nearest' });
  }, [active]);

  const open = () => {
    if (isOpen) return;
    setOpen(true);
    setActive(found.slice(0, SHOWN).findIndex(([each]) => each === value));
    input.current?.select();
    if (more?.isFetchNextPageError) void more.fetchNextPage();
  };
  const close = () => {
    setOpen(false);
    setTyped(undefined);
    setActive(-1);
  };
  const choose = ([wanted]: Option) => {
    close();
    if (wanted !== value) onChange(wanted);
  };
  const leave = () => {
    const text = typed?.trim().toLocaleLowerCase();
    const isMeant = ([wanted, name]: Option) =>
      text === '' ? wanted === '' : name.toLocaleLowerCase() === text;
    const same = found.filter(isMeant);
    if (same.length === 1 && same[0]) choose(same[0]);
    else if (isBare) close();
    else setOpen(false);
  };
  const move = (to: number) => {
    if (isOpen) setActive(Math.max(0, Math.min(shown.length - 1, to)));
    else open();
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLInputElement>) => {
    const { key, altKey } = event;
    const at = shown[active];
    if (key === 'ArrowDown') move(active + 1);
    else if (key === 'ArrowUp' && altKey) close();
    else if (key === 'ArrowUp') move(active - 1);
    else if (key === 'PageDown' && isOpen) move(active + PAGE);
    else if (key === 'PageUp' && isOpen) move(active - PAGE);
    else if (key === 'Enter' && isOpen && (at || typed)) at && choose(at);
    else if (key === 'Escape' && isOpen) close();
    else return;
    event.preventDefault();
  };

  const hint = isWrong ? NOT_CHOSEN : props.hint;
  const optionId = (at: number) => `${id}-${at}`;
  const box = (
    <div class="input choice" data-set={value !== ''}>
      <input
        ref={input}
        id={id}
        role="combobox"
        aria-label={isBare ? label : undefined}
        aria-describedby={hint ? `${id}-hint` : undefined}
        aria-invalid={isWrong}
        aria-autocomplete="list"
        aria-expanded={shown.length > 0}
        aria-controls={shown.length > 0 ? `${id}-list` : undefined}
        aria-activedescendant={shown[active] ? optionId(active) : undefined}
        size={12}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        required={required}
        autofocus={props.autofocus}
        placeholder={none}
        value={typed ?? chosen}
        onClick={open}
        onInput={event => {
          setOpen(true);
          setTyped(event.currentTarget.value);
          setActive(event.currentTarget.value === '' ? -1 : 0);
        }}
        onKeyDown={onKeyDown}
        onBlur={leave}
      />
      <DownIcon />
      {props.name && <input type="hidden" name={props.name} value={value} />}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it does nothing, so that the keys stay in the field. */}
      <div
        ref={popup}
        class="choices-box"
        popover="manual"
        onMouseDown={event => event.preventDefault()}
      >
        {shown.length > 0 && (
          <div id={`${id}-list`} role="listbox" aria-label={label}>
            {shown.map((option, at) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field.
              // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus, and names the active option.
              <div
                key={option[0]}
                id={optionId(at)}
                role="option"
                aria-selected={option[0] === value}
                data-active={at === active}
                onClick={() => choose(option)}
              >
                {option[1]}
              </div>
            ))}
          </div>
        )}
        <p class="muted" role="status">
          {isOpen && describe({ found: found.length, read: options.length, typed, more })}
        </p>
      </div>
    </div>
  );
  if (isBare) return box;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {box}
      {hint && (
        <small id={`${id}-hint`} class={isWrong ? 'trouble' : undefined}>
          {hint}
        </small>
      )}
    </div>
  );
}

interface Told {
  found: number;
  read: number;
  typed: string | undefined;
  more: More | undefined;
}

/** What the list does not say by itself. */
function describe({ found, read, typed = '', more }: Told): string {
  const isReading = found < SHOWN && more?.hasNextPage === true;
  if (isReading && more.isFetchNextPageError) return 'More could not be read. Try it again.';
  if (isReading) return `Looking on, after ${formatCount(read)} …`;
  if (found > SHOWN) {
    const count = `${formatCount(found)}${more?.hasNextPage ? ' and more' : ''}`;
    return `The first ${SHOWN} of ${count}: type a part of the name.`;
  }
  if (typed.trim() === '') return '';
  return found === 0 ? 'No name has this in it.' : `${found} found.`;
}

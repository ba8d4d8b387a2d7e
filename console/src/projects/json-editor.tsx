import type { TargetedKeyboardEvent } from 'preact';
import { useId, useMemo, useRef } from 'preact/hooks';
import { Button } from '../ui/button.tsx';
import { formatJson, type JsonText, placeOf, readJson } from './json-text.ts';

interface JsonEditorProps {
  label: string;
  text: string;
  onChange: (text: string) => void;
  isReadOnly?: boolean;
}

/** Longer texts are shown without colours, which every key draws anew. */
const COLOURED = 100_000;

/**
 * JSON text with line numbers, colours, and its first mistake, to which the arrow leads. The text is the user's:
 * nothing else changes it but *Format*, which moves white space only.
 */
export function JsonEditor({ label, text, onChange, isReadOnly = false }: JsonEditorProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const behind = useRef<HTMLDivElement>(null);
  const says = useId();
  const json = useMemo(() => readJson(text), [text]);
  const isEmpty = text.trim() === '';
  const error = isEmpty ? undefined : json.error;
  const place = error && placeOf(text, error.at);
  const isColoured = text.length <= COLOURED;
  const follow = () => {
    const { scrollTop = 0, scrollLeft = 0 } = area.current ?? {};
    behind.current?.style.setProperty('--left', `${-scrollLeft}px`);
    behind.current?.style.setProperty('--top', `${-scrollTop}px`);
  };
  const goTo = (at: number) => {
    area.current?.focus();
    area.current?.setSelectionRange(at, at);
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== 'Enter' || event.ctrlKey || event.metaKey || event.isComposing) return;
    const { value, selectionStart } = event.currentTarget;
    const line = value.slice(value.lastIndexOf('\n', selectionStart - 1) + 1, selectionStart);
    const indent = /^ */.exec(line)?.[0] ?? '';
    const deeper = /[{[]\s*$/.test(line) ? '  ' : '';
    if (indent === '' && deeper === '') return;
    event.preventDefault();
    // The only way to insert a text that the user can undo.
    document.execCommand('insertText', false, `\n${indent}${deeper}`);
  };
  return (
    <div class="json">
      <div class="json-box" data-coloured={isColoured}>
        <div class="json-behind" aria-hidden="true" ref={behind}>
          <LineNumbers text={text} wrong={place?.line} />
          {isColoured && <Coloured text={text} json={json} />}
        </div>
        <textarea
          ref={area}
          class="code"
          aria-label={label}
          aria-invalid={error !== undefined}
          aria-describedby={says}
          wrap="off"
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          readOnly={isReadOnly}
          value={text}
          onInput={event => onChange(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onScroll={follow}
        />
      </div>
      <div class="json-end">
        <p id={says} role="status" class={error ? 'trouble' : 'muted'}>
          {place && error
            ? `Line ${place.line}, column ${place.column}: ${error.problem}.`
            : isEmpty
              ? 'Any JSON value: a number, a text in double quotes, a list, an object.'
              : 'It is JSON. Numbers stay as they are written.'}
        </p>
        {error && (
          <Button size="small" onClick={() => goTo(error.at)}>
            Go there
          </Button>
        )}
        {!error && !isEmpty && !isReadOnly && (
          <Button size="small" onClick={() => onChange(formatJson(text))}>
            Format
          </Button>
        )}
      </div>
    </div>
  );
}

function LineNumbers({ text, wrong }: { text: string; wrong: number | undefined }) {
  const count = useMemo(() => text.split('\n').length, [text]);
  const numbers = (from: number, to: number) =>
    Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => `${from + n}\n`).join('');
  return (
    <pre class="json-numbers">
      {wrong === undefined ? (
        numbers(1, count)
      ) : (
        <>
          {numbers(1, wrong - 1)}
          <mark>{wrong}</mark>
          {`\n${numbers(wrong + 1, count)}`}
        </>
      )}
    </pre>
  );
}

/** What stands between the tokens is drawn as it is. */
function Coloured({ text, json: { tokens } }: { text: string; json: JsonText }) {
  let at = 0;
  const pieces = tokens.map(({ kind, from, to }) => {
    const before = text.slice(at, from);
    at = to;
    return (
      <>
        {before}
        <span data-kind={kind}>{text.slice(from, to)}</span>
      </>
    );
  });
  return (
    <pre class="json-text">
      {pieces}
      {text.slice(at)}
    </pre>
  );
}

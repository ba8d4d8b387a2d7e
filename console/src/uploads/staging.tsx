import { useState } from 'preact/hooks';
import type { Artifact } from '../service/models.ts';
import { addUpload } from '../service/upload-transfers.ts';
import { type Parser, useParsers } from '../service/uploads.ts';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { CloseIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { Wait } from '../ui/wait.tsx';
import type { NamedFile } from './dropped-files.ts';
import { type Field, fieldsOf, HINTS, parserFor, toParameters } from './parser-fields.ts';

interface StagingProps {
  mid: string;
  files: NamedFile[];
  /** What is in the model, as far as it is known: a name that is there is replaced. */
  known: Artifact[];
  onChange: (files: NamedFile[]) => void;
}

/** An upload has at most so many files. */
const MAX_FILES = 1_000;
const TYPES = ['table', 'array', 'file', 'parameter'] as const;
/** So many names of a group are listed. */
const LISTED = 100;

/** Files before they are sent: by whom they are read, and with which parameters. */
export function Staging({ mid, files, known, onChange }: StagingProps) {
  const parsers = useParsers();
  const [chosen, choose] = useState<Record<string, string>>({});
  const [given, give] = useState<Record<string, Record<string, string>>>({});
  const [problem, setProblem] = useState<string>();
  if (parsers.error) return <Problem error={parsers.error} />;
  if (!parsers.data) return <Wait>Asking who reads which files …</Wait>;
  const all = parsers.data;
  const groups = groupFiles(files, all);
  const parserOf = (group: string) =>
    all.find(({ name }) => name === (chosen[group] ?? group)) ?? all[0];
  const send = () => {
    const ready = [...groups].map(([group, named]) => {
      const parser = parserOf(group);
      const parameters = parser ? toParameters(fieldsOf(parser), given[group] ?? {}) : {};
      return { named, parser: parser?.name ?? 'blob', parameters };
    });
    const wrong = ready.find(({ parameters }) => typeof parameters === 'string');
    if (wrong) return setProblem(String(wrong.parameters));
    for (const { named, parser, parameters } of ready)
      for (let from = 0; from < named.length; from += MAX_FILES) {
        const part = named.slice(from, from + MAX_FILES);
        addUpload({
          mid,
          parser,
          aids: part.map(({ name }) => name),
          files: part.map(({ file }) => file),
          parameters: parameters as Record<string, unknown>,
        });
      }
    onChange([]);
  };
  const total = files.reduce((sum, { file }) => sum + file.size, 0);
  return (
    <section class="card" aria-label="To be uploaded">
      {[...groups].map(([group, named]) => {
        const parser = parserOf(group);
        return (
          <div key={group} class="stage">
            <div class="row">
              <strong>{named.length === 1 ? 'One file' : `${named.length} files`}, read by</strong>
              <select
                class="input short"
                aria-label={`Parser of ${named[0]?.name}${named.length > 1 ? ' and others' : ''}`}
                value={parser?.name}
                onChange={event => choose({ ...chosen, [group]: event.currentTarget.value })}
              >
                {all.map(({ name }) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
              <span class="muted grow">{parser?.meaning}</span>
            </div>
            <ul class="staged">
              {named.slice(0, LISTED).map(one => (
                <li key={one.name} class="row">
                  <span class="grow ellipsis" title={one.name}>
                    {one.name}
                  </span>
                  <Replaced name={one.name} known={known} />
                  <span class="muted">{formatBytes(one.file.size)}</span>
                  <Button
                    look="quiet"
                    size="icon"
                    aria-label={`Leave out ${one.name}`}
                    repeats
                    onClick={() => onChange(files.filter(each => each !== one))}
                  >
                    <CloseIcon />
                  </Button>
                </li>
              ))}
              {named.length > LISTED && <li class="muted">and {named.length - LISTED} more</li>}
            </ul>
            {parser && fieldsOf(parser).length > 0 && (
              <details>
                <summary>How it is read</summary>
                <p class="muted">What you leave empty is found by itself.</p>
                <ParserForm
                  fields={fieldsOf(parser)}
                  given={given[group] ?? {}}
                  onChange={changes => give({ ...given, [group]: { ...given[group], ...changes } })}
                />
              </details>
            )}
          </div>
        );
      })}
      {problem && <Problem error={problem} />}
      <div class="stage row">
        <Button look="primary" onClick={send}>
          Upload {files.length === 1 ? 'the file' : `${files.length} files`} ({formatBytes(total)})
        </Button>
        <Button onClick={() => onChange([])}>Cancel</Button>
      </div>
    </section>
  );
}

/** What goes with what is in the model: of its name, or made of what is in such a file, as `pack.zip/day.csv`. */
function Replaced({ name, known }: { name: string; known: Artifact[] }) {
  const found = known.filter(({ aid }) => aid === name || aid.startsWith(`${name}/`));
  if (found.length === 0) return null;
  const counts = TYPES.map(type => [type, found.filter(one => one.type === type).length] as const)
    .filter(([, count]) => count > 0)
    .map(([type, count]) => `${formatCount(count)} ${type}${count === 1 ? '' : 's'}`);
  const isOne = found.length === 1 && found[0]?.aid === name;
  return (
    <span class="badge" data-state="queued">
      Replaces {isOne ? 'what is there' : counts.join(', ')}
    </span>
  );
}

/** By the parser of their names. */
function groupFiles(files: NamedFile[], parsers: Parser[]): Map<string, NamedFile[]> {
  const groups = new Map<string, NamedFile[]>();
  for (const one of files) {
    const parser = parserFor(one.name, parsers);
    const group = groups.get(parser);
    if (group) group.push(one);
    else groups.set(parser, [one]);
  }
  return groups;
}

interface ParserFormProps {
  fields: Field[];
  given: Record<string, string>;
  onChange: (changes: Record<string, string>) => void;
}

const ParserForm = ({ fields, given, onChange }: ParserFormProps) => (
  <div class="two parser-fields">
    {fields.map(field => {
      const { name, kind } = field;
      const value = given[name] ?? '';
      const change = (text: string) => onChange({ [name]: text });
      const choices = kind === 'switch' ? ['yes', 'no'] : kind === 'choice' ? field.choices : [];
      return (
        // biome-ignore lint/a11y/noLabelWithoutControl: it has one of the two.
        <label key={name} class="field">
          <span>{name}</span>
          {choices.length > 0 ? (
            <select
              class="input"
              value={value}
              onChange={event => change(event.currentTarget.value)}
            >
              <option value="">by itself</option>
              {choices.map(choice => (
                <option key={choice}>{choice}</option>
              ))}
            </select>
          ) : (
            <input
              class={kind === 'json' ? 'input mono' : 'input'}
              type={kind === 'count' ? 'number' : 'text'}
              min={kind === 'count' ? 0 : undefined}
              value={value}
              onInput={event => change(event.currentTarget.value)}
            />
          )}
          {HINTS[name] && <small>{HINTS[name]}</small>}
        </label>
      );
    })}
  </div>
);

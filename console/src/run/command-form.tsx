import { useMutation } from '@tanstack/preact-query';
import type { TargetedKeyboardEvent, TargetedSubmitEvent } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { nameOfEngine } from '../jobs/engines.ts';
import { isSignedOut, queries } from '../service/client.ts';
import { keepCommand, keepDraft, readCommands, readDraft } from '../service/command-history.ts';
import type { SessionRecord } from '../service/hosts.ts';
import { startBatch, startCommand } from '../service/jobs.ts';
import { Button } from '../ui/button.tsx';
import { PlayIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { BatchFields, readBatch } from './batch-fields.tsx';
import { describeOptions } from './describe-options.ts';
import { EarlierCommands } from './earlier-commands.tsx';
import { type Given, RunOptionFields, readRunOptions } from './run-options.tsx';

interface CommandFormProps {
  session: SessionRecord;
  /** It goes to the batch system of the host. */
  isBatch: boolean;
  onBatch: (isBatch: boolean) => void;
  onStarted: (job: string) => void;
}

const MAX_ROWS = 14;

/** A command of one or more lines. Ctrl+Enter runs it; the arrow keys bring earlier ones back. */
export function CommandForm({ session, isBatch, onBatch, onStarted }: CommandFormProps) {
  const { sid, hostname, engines } = session;
  const [kept] = useState(readDraft);
  const [command, setCommand] = useState(kept.command);
  const [fields, setFields] = useState(kept.fields);
  /** How far back in the history; -1: what is being typed. */
  const [past, setPast] = useState(-1);
  const draft = useRef('');
  const form = useRef<HTMLFormElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const start = useMutation({
    mutationFn: async ({ text, given }: { text: string; given: Given }) => {
      if (isBatch) return startBatch(sid, readBatch(text, given));
      return startCommand(sid, text, readRunOptions(given));
    },
    // Called when the user has left the page, too.
    onSuccess: (_, { text }) => {
      keepCommand(text);
      // The form has it as long as it is there. What was typed meanwhile is not sent. Options are for the next one, too:
      // without its folder it would do something else.
      const { command: kept, fields: options } = readDraft();
      if (kept === text) keepDraft({ command: '', fields: options, isCopy: true });
      void queries.invalidateQueries({ queryKey: ['jobs'] });
    },
  });
  // It is there again after a look at other pages, and after a reload.
  const change = (text: string, given = fields) => {
    setCommand(text);
    setFields(given);
    keepDraft({ command: text, fields: given });
  };
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (command.trim() === '' || start.isPending) return;
    const given = { text: command, given: readFields(event.currentTarget) };
    start.mutate(given, {
      onSuccess: job => {
        setPast(-1);
        onStarted(job);
      },
    });
  };
  const recall = (step: number): boolean => {
    const commands = readCommands();
    const next = past + step;
    if (next < -1 || next >= commands.length) return false;
    if (past === -1) draft.current = command;
    setPast(next);
    change(next === -1 ? draft.current : (commands[next] ?? ''));
    return true;
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    const { value, selectionStart, selectionEnd } = event.currentTarget;
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      // Keys that are held come again and again.
      if (!event.repeat) form.current?.requestSubmit();
    } else if (event.key === 'ArrowUp' && !value.slice(0, selectionStart).includes('\n')) {
      if (!recall(1)) return;
    } else if (event.key === 'ArrowDown' && !value.slice(selectionEnd).includes('\n')) {
      if (!recall(-1)) return;
    } else return;
    event.preventDefault();
  };
  const rows = Math.min(MAX_ROWS, Math.max(3, command.split('\n').length));
  const told = describeOptions(fields, isBatch);
  const hasBatch = isBatch || (engines ?? []).length > 0;
  return (
    <form
      class="card command"
      ref={form}
      onSubmit={send}
      onInput={event =>
        change(area.current?.value ?? '', { ...fields, ...readFields(event.currentTarget) })
      }
    >
      {hasBatch && <How isBatch={isBatch} engine={engines?.[0] ?? 'slurm'} onBatch={onBatch} />}
      <textarea
        class="input code"
        ref={area}
        aria-label={isBatch ? `Batch job on ${hostname}` : `Command on ${hostname}`}
        placeholder={
          isBatch
            ? 'A command, or a script that begins with #!/bin/bash and may have lines of #SBATCH'
            : `What ${hostname} should do, such as: cd study && ./simulate --steps 100`
        }
        rows={rows}
        spellcheck={false}
        autocapitalize="none"
        value={command}
        onInput={() => setPast(-1)}
        onKeyDown={onKeyDown}
      />
      <div class="command-end">
        <details class="grow" open={isBatch || Object.values(kept.fields).some(Boolean)}>
          <summary>
            Options
            {told.length > 0 && <span class="options-set">: {told.join(', ')}</span>}
          </summary>
          {isBatch ? <BatchFields draft={fields} /> : <RunOptionFields draft={fields} />}
        </details>
        <div class="row command-send">
          <span class="muted hint">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it, <kbd>↑</kbd> brings earlier ones back
          </span>
          <EarlierCommands
            onChoose={chosen => {
              change(chosen);
              setPast(-1);
              area.current?.focus();
            }}
          />
          <Button type="submit" look="primary" disabled={start.isPending || command.trim() === ''}>
            <PlayIcon />
            {start.isPending ? 'Starting …' : isBatch ? 'Submit' : 'Run'}
          </Button>
        </div>
      </div>
      {start.error && (
        <Problem
          error={
            isSignedOut(start.error)
              ? `It was not run: press ${isBatch ? 'Submit' : 'Run'} again.`
              : start.error
          }
        />
      )}
    </form>
  );
}

interface HowProps {
  isBatch: boolean;
  engine: string;
  onBatch: (isBatch: boolean) => void;
}

const How = ({ isBatch, engine, onBatch }: HowProps) => (
  <div class="command-how row">
    <div class="tabs" role="radiogroup" aria-label="How it is run">
      {[false, true].map(batch => (
        <label key={String(batch)}>
          <input type="radio" checked={isBatch === batch} onChange={() => onBatch(batch)} />
          {batch ? 'Batch job' : 'Command'}
        </label>
      ))}
    </div>
    <span class="muted hint">
      {isBatch ? `${nameOfEngine(engine)} runs it when there is room.` : 'It runs at once.'}
    </span>
  </div>
);

const readFields = (form: HTMLFormElement): Given =>
  Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));

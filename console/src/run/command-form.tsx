import { useMutation } from '@tanstack/preact-query';
import type { RunOptions } from '@windlass/client';
import type { TargetedKeyboardEvent, TargetedSubmitEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { queries, windlass } from '../service/client.ts';
import { keepCommand, keepDraft, readCommands, readDraft } from '../service/command-history.ts';
import type { SessionRecord } from '../service/hosts.ts';
import { Button } from '../ui/button.tsx';
import { PlayIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { RunOptionFields, readRunOptions } from './run-options.tsx';

interface CommandFormProps {
  session: SessionRecord;
  onStarted: (job: string) => void;
}

const MOST_ROWS = 14;

/** A command of one or more lines. Ctrl+Enter runs it; the arrow keys bring earlier ones back. */
export function CommandForm({ session, onStarted }: CommandFormProps) {
  const [command, setCommand] = useState(readDraft);
  /** How far back in the history; -1: what is being typed. */
  const [past, setPast] = useState(-1);
  const draft = useRef('');
  const form = useRef<HTMLFormElement>(null);
  const start = useMutation({
    mutationFn: ({ text, options }: { text: string; options: RunOptions }) =>
      windlass.session(session.sid).run(text, options).job,
    onSuccess: (job, { text }) => {
      keepCommand(text);
      keepDraft('');
      setPast(-1);
      void queries.invalidateQueries({ queryKey: ['jobs'] });
      onStarted(job);
    },
  });
  // It is there again after a look at other pages, and after a reload.
  useEffect(() => keepDraft(command), [command]);
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (command.trim() === '' || start.isPending) return;
    const options = readRunOptions(new FormData(event.currentTarget));
    start.mutate({ text: command, options });
  };
  const recall = (step: number): boolean => {
    const commands = readCommands();
    const next = past + step;
    if (next < -1 || next >= commands.length) return false;
    if (past === -1) draft.current = command;
    setPast(next);
    setCommand(next === -1 ? draft.current : (commands[next] ?? ''));
    return true;
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    const { value, selectionStart, selectionEnd } = event.currentTarget;
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.current?.requestSubmit();
    else if (event.key === 'ArrowUp' && !value.slice(0, selectionStart).includes('\n')) {
      if (!recall(1)) return;
    } else if (event.key === 'ArrowDown' && !value.slice(selectionEnd).includes('\n')) {
      if (!recall(-1)) return;
    } else return;
    event.preventDefault();
  };
  const rows = Math.min(MOST_ROWS, Math.max(3, command.split('\n').length));
  return (
    <form class="card command" ref={form} onSubmit={send}>
      <textarea
        class="input code"
        aria-label={`Command on ${session.hostname}`}
        placeholder={`What ${session.hostname} should do, such as: cd study && ./simulate --steps 100`}
        rows={rows}
        spellcheck={false}
        autocapitalize="none"
        value={command}
        onInput={event => {
          setCommand(event.currentTarget.value);
          setPast(-1);
        }}
        onKeyDown={onKeyDown}
      />
      <div class="command-end">
        <RunOptionFields />
        <div class="row command-send">
          <span class="muted hint">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it, <kbd>↑</kbd> brings earlier ones back
          </span>
          <Button type="submit" look="primary" disabled={start.isPending || command.trim() === ''}>
            <PlayIcon />
            {start.isPending ? 'Starting …' : 'Run'}
          </Button>
        </div>
      </div>
      {start.error && <Problem error={start.error} />}
    </form>
  );
}

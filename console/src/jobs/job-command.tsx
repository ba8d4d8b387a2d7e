import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { keepDraft, readUnsent } from '../service/command-history.ts';
import { useSessions } from '../service/hosts.ts';
import { type JobCommand as Asked, type Job, useJobCommand } from '../service/jobs.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { CopyText } from '../ui/copy-text.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { toDraft } from './command-draft.ts';

/** So many characters are seen in the title of a page, where the window is not small. */
const IN_TITLE = 40;

/** All of what a job runs, where its label is not all of it. */
export function JobCommand({ job }: { job: Job }) {
  const { data: asked } = useJobCommand(job.id);
  if (!asked) return null;
  const text = asked.script ?? asked.command ?? '';
  const label = asked.script === null ? 'Command' : 'Script';
  const facts = factsOf(asked);
  // A short one stands in the title, whole.
  if (text === job.label && text.length <= IN_TITLE && facts.length === 0) return null;
  return (
    <section class="card" aria-label="What it runs">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys, too. */}
      <section class="job-command" aria-label={label} tabIndex={0}>
        <pre>{text}</pre>
      </section>
      <div class="job-command-end">
        <CopyText text={text} />
      </div>
      {facts.length > 0 && (
        <dl class="facts">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

/** Its command in the form of a new one, on the login that it had; with its standard input it would not be the same. */
export function ChangeAndRun({ job }: { job: Job }) {
  const { data: asked } = useJobCommand(job.id);
  const { data: sessions } = useSessions();
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState<ReturnType<typeof readUnsent>>();
  const isOpen = sessions?.some(({ sid, state }) => sid === job.session && state === 'open');
  if (!asked || asked.stdin > 0 || !isOpen) return null;
  const change = () => {
    keepDraft({
      command: asked.script ?? asked.command ?? '',
      fields: toDraft(asked, job.name),
      isCopy: true,
    });
    navigate(`/run?session=${job.session}${job.kind === 'batch' ? '&as=batch' : ''}`);
  };
  const ask = () => {
    const unsent = readUnsent();
    if (unsent) setTyped(unsent);
    else change();
  };
  return (
    <>
      <Button title="In the form of a new job: it is run when you say so" onClick={ask}>
        Change and run
      </Button>
      {typed && (
        <ConfirmDialog
          title="Replace what you typed?"
          action="Replace it"
          isPending={false}
          error={undefined}
          onConfirm={change}
          onClose={() => setTyped(undefined)}
        >
          <p>This is typed on the page Run, and was not sent:</p>
          {typed.command.trim() !== '' && <pre class="break">{typed.command}</pre>}
          {typed.filled > 0 && <p>Options that are filled in: {typed.filled}.</p>}
        </ConfirmDialog>
      )}
    </>
  );
}

/** What was given beside the text. */
function factsOf({ cwd, env, stdin, timeout, batch }: Asked): [name: string, value: string][] {
  const { nodes, tasks, cpus, memory, time, queue, account, options = [] } = batch ?? {};
  const facts: [string, string | number | null | undefined][] = [
    ['Folder', cwd],
    ['Variables', env.join(', ')],
    ['Standard input', stdin > 0 ? formatBytes(stdin) : null],
    ['Time limit', timeout === null ? null : `${timeout} s`],
    ['Nodes', nodes],
    ['Tasks', tasks],
    ['Cores a task', cpus],
    ['Memory a node', memory && formatBytes(memory)],
    ['Time', time && `${time / 60} min`],
    ['Queue', queue],
    ['Account', account],
    ['More options', options.join(' ')],
  ];
  return facts.flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, String(value)] as const],
  ) as [string, string][];
}

import type { BatchOptions } from '@windlass/client';
import { CommonFields, EnvironmentField, type Given, readCommonFields } from './run-options.tsx';

const GIB = 2 ** 30;
const NUMBERS = [
  { name: 'nodes', label: 'Nodes' },
  { name: 'tasks', label: 'Tasks' },
  { name: 'cpus', label: 'Cores a task' },
] as const;

/** What a job asks the batch system of its host for. What is left out is the system's own choice. */
export const BatchFields = ({ draft }: { draft: Given }) => (
  <div class="two batch-fields">
    {NUMBERS.map(({ name, label }) => (
      <label class="field" key={name}>
        <span>{label}</span>
        <input class="input" name={name} type="number" min="1" defaultValue={draft[name]} />
      </label>
    ))}
    <label class="field">
      <span>Memory a node, in GiB</span>
      <input
        class="input"
        name="memory"
        type="number"
        min="0.001"
        step="any"
        defaultValue={draft.memory}
      />
    </label>
    <label class="field">
      <span>Time, in minutes</span>
      <input class="input" name="minutes" type="number" min="1" defaultValue={draft.minutes} />
    </label>
    <label class="field">
      <span>Queue</span>
      <input class="input mono" name="queue" autocomplete="off" defaultValue={draft.queue} />
    </label>
    <label class="field">
      <span>Account</span>
      <input class="input mono" name="account" autocomplete="off" defaultValue={draft.account} />
    </label>
    <CommonFields draft={draft} />
    <EnvironmentField draft={draft} />
    <label class="field">
      <span>More options, a line for each</span>
      <textarea
        class="input code"
        name="options"
        rows={2}
        placeholder="--gres=gpu:1"
        spellcheck={false}
        defaultValue={draft.options}
      />
    </label>
  </div>
);

/** A text whose first line names an interpreter is a script of its own, as `sbatch` takes it; any other is a line for the shell. */
export function readBatch(text: string, given: Given): BatchOptions {
  const number = (name: string, times = 1) =>
    given[name] ? Math.round(Number(given[name]) * times) : undefined;
  const options = (given.options ?? '')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
  const script = text.trimStart();
  return {
    ...(script.startsWith('#!') ? { script } : { command: text }),
    ...readCommonFields(given),
    nodes: number('nodes'),
    tasks: number('tasks'),
    cpus: number('cpus'),
    memory: number('memory', GIB),
    time: number('minutes', 60),
    queue: given.queue?.trim() || undefined,
    account: given.account?.trim() || undefined,
    options: options.length > 0 ? options : undefined,
  };
}

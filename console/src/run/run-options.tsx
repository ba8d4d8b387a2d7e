import type { RunOptions } from '@windlass/client';

/** How a command is run, for those who need it. */
export const RunOptionFields = () => (
  <details class="grow">
    <summary>Options</summary>
    <div class="two">
      <label class="field">
        <span>Name</span>
        <input class="input" name="name" maxLength={200} placeholder="For the list of jobs" />
      </label>
      <label class="field">
        <span>Folder</span>
        <input class="input mono" name="cwd" placeholder="The account's home" />
      </label>
      <label class="field">
        <span>Time limit, in seconds</span>
        <input class="input" name="timeout" type="number" min="1" placeholder="None" />
      </label>
      <label class="field">
        <span>Environment, a line for each variable</span>
        <textarea class="input code" name="env" rows={2} placeholder="OMP_NUM_THREADS=8" />
      </label>
      <label class="field">
        <span>Standard input</span>
        <textarea class="input code" name="stdin" rows={2} />
      </label>
    </div>
  </details>
);

/** Of the form's fields those that were filled in. */
export function readRunOptions(fields: FormData): RunOptions {
  const text = (name: string) => String(fields.get(name) ?? '') || undefined;
  const timeout = text('timeout');
  const lines = text('env')
    ?.split('\n')
    .filter(line => line.includes('='));
  return {
    name: text('name'),
    cwd: text('cwd'),
    stdin: text('stdin'),
    timeout: timeout === undefined ? undefined : Number(timeout),
    env: lines && Object.fromEntries(lines.map(readVariable)),
  };
}

function readVariable(line: string): [string, string] {
  const equals = line.indexOf('=');
  return [line.slice(0, equals).trim(), line.slice(equals + 1).replace(/\r$/, '')];
}

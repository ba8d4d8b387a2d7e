import type { RunOptions } from '@windlass/client';
import { readEnvironment } from './environment.ts';

/** What was given for the fields of a form, by their names. */
export type Given = Record<string, string>;

/** How a command is run, for those who need it. */
export const RunOptionFields = ({ draft }: { draft: Given }) => (
  <div class="two">
    <CommonFields draft={draft} />
    <label class="field">
      <span>Time limit, in seconds</span>
      <input
        class="input"
        name="timeout"
        type="number"
        min="1"
        placeholder="None"
        defaultValue={draft.timeout}
      />
    </label>
    <EnvironmentField draft={draft} />
    <label class="field">
      <span>Standard input</span>
      <textarea class="input code" name="stdin" rows={2} defaultValue={draft.stdin} />
    </label>
  </div>
);

export const CommonFields = ({ draft }: { draft: Given }) => (
  <>
    <label class="field">
      <span>Name</span>
      <input
        class="input"
        name="name"
        maxLength={200}
        placeholder="For the list of jobs"
        defaultValue={draft.name}
      />
    </label>
    <label class="field">
      <span>Folder</span>
      <input
        class="input mono"
        name="cwd"
        placeholder="The account's home"
        defaultValue={draft.cwd}
      />
    </label>
  </>
);

export const EnvironmentField = ({ draft }: { draft: Given }) => (
  <label class="field">
    <span>Environment, a line for each variable</span>
    <textarea
      class="input code"
      name="env"
      rows={2}
      placeholder="OMP_NUM_THREADS=8"
      spellcheck={false}
      defaultValue={draft.env}
    />
  </label>
);

/** The fields that were filled in. Throws for a line of the environment that is none. */
export function readRunOptions(given: Given): RunOptions {
  return {
    ...readCommonFields(given),
    stdin: given.stdin || undefined,
    timeout: given.timeout ? Number(given.timeout) : undefined,
  };
}

export const readCommonFields = ({ name, cwd, env }: Given) => ({
  name: name || undefined,
  cwd: cwd || undefined,
  env: env?.trim() ? readEnvironment(env) : undefined,
});

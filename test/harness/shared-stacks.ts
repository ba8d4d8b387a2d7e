import { afterAll, describe } from 'vitest';
import { type Stack, type StackOptions, startStack } from './stack.ts';

type Form = NonNullable<StackOptions['form']>;

/** The stacks of a group of test files, one of each form, with what it was started with; undefined where every file has its own. */
let shared: Map<Form, { settings: string; stack: Stack }> | undefined;

/**
 * Runs these test files one after another in this one, on one stack of each form: starting a stack costs more processor time
 * than the tests of most files. A file that starts its with other settings than the one before it gets a new one, which the
 * next may share: files with the same settings stand together. Only for files that neither stop theirs, nor leave it with
 * less than it began with, nor ask for all that was ever done on it, nor measure its processes. Each finds the users, hosts,
 * projects and sessions of a new stack.
 */
export function runTogether(files: readonly string[]): void {
  shared = new Map();
  for (const file of files) {
    // What it registers for its end is then run at its end.
    describe(file, async () => {
      // Vite itself would find only those of one folder.
      await import(/* @vite-ignore */ `../${file}.test.ts`);
    });
  }
  afterAll(async () => {
    const stacks = [...(shared?.values() ?? [])];
    shared = undefined;
    for (const { stack } of stacks) await stack.stop();
  });
}

/** A stack of the group's where there is a group; its stop() leaves it to the next file, emptied. */
export async function startOwnOrShared(options: StackOptions): Promise<Stack> {
  if (!shared) return startStack(options);
  const { form = 'embedded', ...rest } = options;
  const settings = JSON.stringify(rest);
  const present = shared.get(form);
  let stack = present?.stack;
  if (!stack || present?.settings !== settings || !(await isReady(stack))) {
    shared.delete(form);
    await stack?.stop();
    stack = await startStack(options);
    shared.set(form, { settings, stack });
  }
  const running = stack;
  return Object.assign(Object.create(running), { stop: () => empty(running) });
}

async function isReady(stack: Stack): Promise<boolean> {
  return (await stack.api('/readyz').catch(() => undefined))?.ok ?? false;
}

/** Removes what files give names to; with a user goes all that is theirs. */
async function empty(stack: Stack): Promise<void> {
  const own = stack.username;
  await removeAll(stack, 'users', item => (item.username === own ? undefined : item.username));
  await removeAll(stack, 'remotes', item => item.sid);
  await removeAll(stack, 'hosts', item => item.name);
  await removeAll(stack, 'projects', item => item.id);
}

async function removeAll(
  stack: Stack,
  kind: string,
  nameOf: (item: Record<string, string>) => string | undefined,
): Promise<void> {
  let next: string | null = '';
  while (next !== null) {
    const from: string = next && `&after=${encodeURIComponent(next)}`;
    const page = await stack.api(`/api/${kind}?limit=100${from}`);
    if (!page.ok) throw new Error(`${page.status}: ${await page.text()}`);
    const list = (await page.json()) as { items: Record<string, string>[]; next: string | null };
    for (const name of list.items.map(nameOf)) {
      if (name === undefined) continue;
      const path = `/api/${kind}/${encodeURIComponent(name)}`;
      const answer = await stack.api(path, { method: 'DELETE' });
      // Gone meanwhile, with what it belonged to or by itself.
      if (!answer.ok && answer.status !== 404)
        throw new Error(`DELETE ${path}: ${answer.status} ${await answer.text()}`);
    }
    next = list.next;
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { type Stack, type StackOptions, startStack } from './stack.ts';

export interface SharedStackOptions extends StackOptions {
  /** Why these tests need a stack that no other file has used or will use. */
  alone?: string;
  /** Embedded: the number of workers. Default 1, as the start of another and its wait cost processor time. */
  workers?: number;
}

interface SharedStack {
  /** What it was started with. */
  settings: string;
  stack: Stack;
  inUse: boolean;
  /** Ends it, while it is not in use. */
  end?: NodeJS.Timeout;
}

/** One that waits for its next user costs processor time too: files that share one stand together, see order.ts. */
const MAX_UNUSED = 1;
/** In so long an unused one costs as much as the start of another: a fifteenth of a core, and four seconds. */
const UNUSED_MS = 60_000;

/** The stacks of this worker process of vitest, the one that was used last at the end. They outlive a test file. */
const stacks: SharedStack[] = [];

/**
 * A stack with these settings, left by an earlier test file of this process or new, as a start costs more than most
 * files. Its stop() removes what the file made, but not jobs and metrics. `alone` is the reason of a file that ends its
 * stack, measures processes or counts all that was ever done.
 */
export async function startOwnOrShared(options: SharedStackOptions): Promise<Stack> {
  const { alone, ...given } = options;
  const own = { workers: 1, ...given };
  if (alone !== undefined) return startStack(own);
  const { form = 'embedded', ...rest } = own;
  const settings = JSON.stringify({ form, ...rest });
  const found = stacks.find(shared => !shared.inUse && shared.settings === settings);
  if (found) {
    found.inUse = true;
    clearTimeout(found.end);
  }
  if (found && (await isReady(found.stack))) return lend(found);
  if (found) await end(found);
  const started: SharedStack = { settings, stack: await startStack(own), inUse: true };
  stacks.push(started);
  return lend(started);
}

function lend(shared: SharedStack): Stack {
  const refuse = async () => {
    throw new Error('Other files use this stack too: give a reason as `alone`.');
  };
  const overrides = { stop: () => takeBack(shared), down: refuse, up: refuse };
  return Object.assign(Object.create(shared.stack), overrides);
}

async function takeBack(shared: SharedStack): Promise<void> {
  try {
    await empty(shared.stack);
  } catch (error) {
    await end(shared);
    throw error;
  }
  shared.inUse = false;
  // A stop that fails is told as an unhandled error of the run.
  shared.end = setTimeout(() => void end(shared), UNUSED_MS).unref();
  stacks.push(...stacks.splice(stacks.indexOf(shared), 1));
  const unused = stacks.filter(({ inUse }) => !inUse);
  for (const oldest of unused.slice(0, -MAX_UNUSED)) await end(oldest);
}

async function end(shared: SharedStack): Promise<void> {
  clearTimeout(shared.end);
  const at = stacks.indexOf(shared);
  // It is ended already.
  if (at === -1) return;
  stacks.splice(at, 1);
  await shared.stack.stop();
}

async function isReady(stack: Stack): Promise<boolean> {
  return (await stack.api('/readyz').catch(() => undefined))?.ok ?? false;
}

/** Removes what files give names to; with a user goes all that is theirs. */
async function empty(stack: Stack): Promise<void> {
  const own = stack.username;
  await removeAll(stack, 'users', item => (item.username === own ? undefined : item.username));
  await removeAll(stack, 'remotes', item => item.sid);
  // No host can be removed that another one is reached through.
  await forEach(stack, 'hosts', async ({ name, jump }) => {
    if (jump) await request(stack, `/api/hosts/${name}`, 'PUT', { jump: null });
  });
  await removeAll(stack, 'hosts', item => item.name);
  await removeAll(stack, 'projects', item => item.id);
}

const removeAll = (
  stack: Stack,
  kind: string,
  nameOf: (item: Record<string, string>) => string | undefined,
): Promise<void> =>
  forEach(stack, kind, async item => {
    const name = nameOf(item);
    if (name === undefined) return;
    await request(stack, `/api/${kind}/${encodeURIComponent(name)}`, 'DELETE');
  });

async function forEach(
  stack: Stack,
  kind: string,
  work: (item: Record<string, string>) => Promise<void>,
): Promise<void> {
  let next: string | null = '';
  while (next !== null) {
    const from: string = next && `&after=${encodeURIComponent(next)}`;
    const page = await request(stack, `/api/${kind}?limit=100${from}`);
    const list = (await page.json()) as { items: Record<string, string>[]; next: string | null };
    for (const item of list.items) await work(item);
    next = list.next;
  }
}

/** Asks as the administrator, whose rate limit the tests may have used up. */
async function request(
  stack: Stack,
  path: string,
  method = 'GET',
  body?: object,
): Promise<Response> {
  const headers = { 'Content-Type': 'application/json' };
  const content = body && { headers, body: JSON.stringify(body) };
  const ask = () => stack.api(path, { method, ...content });
  for (;;) {
    // A file that let this process wait, as for a build, finds the connection closed that was open before.
    const answer = await (content ? ask() : ask().catch(ask));
    // Gone meanwhile, with what it belonged to or by itself.
    if (answer.ok || (method === 'DELETE' && answer.status === 404)) return answer;
    if (answer.status !== 429) {
      throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    }
    await delay(1_000 * Number(answer.headers.get('Retry-After') ?? 1));
  }
}

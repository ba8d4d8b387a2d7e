import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ProcessSpec } from './supervised-process.ts';
import { supervise } from './supervisor.ts';

const compiled = new URL('../../dist/cli/supervisor/supervisor.js', import.meta.url).href;
const WAIT = { timeout: 15_000, interval: 10 };

/** Writes `what pid milliseconds` lines to the file NOTES and runs until it is stopped. */
const PRELUDE = `
import { appendFileSync } from 'node:fs';
const note = what => appendFileSync(process.env.NOTES, what + ' ' + process.pid + ' ' + Date.now() + '\\n');
const live = () => setInterval(() => {}, 1000);
note('start');
`;
const GOOD = `${PRELUDE}
process.on('SIGTERM', () => { note('term'); process.exit(0); });
process.on('disconnect', () => { note('disconnect'); process.exit(0); });
process.send({ type: 'ready' });
live();
`;
const STUBBORN = `${PRELUDE}
process.on('SIGTERM', () => note('term'));
process.send({ type: 'ready' });
live();
`;
const HOPELESS = `${PRELUDE}\nprocess.exit(3);`;

let scratch: string;
let stop: AbortController;
let forceShutdown: AbortController;
let stopped: Promise<void>;

beforeEach(() => {
  scratch = fs.mkdtempSync(join(tmpdir(), 'windlass-supervisor-'));
  stop = new AbortController();
  forceShutdown = new AbortController();
});

afterEach(async () => {
  stop.abort();
  forceShutdown.abort();
  await stopped;
  fs.rmSync(scratch, { recursive: true, force: true });
});

describe('keeping alive', () => {
  test('it is ready when all processes are', async () => {
    const { ready } = run([[spec('one', GOOD)], [spec('two', GOOD), spec('three', GOOD)]]);
    await ready;
    expect(['one', 'two', 'three'].map(name => notes(name).length)).toEqual([1, 1, 1]);
  });

  test('a killed process is restarted, repeatedly', async () => {
    await run([[spec('one', GOOD)]]).ready;
    for (let kills = 1; kills <= 4; kills += 1) {
      const { pid } = await last('one', 'start', kills);
      process.kill(pid, 'SIGKILL');
      const next = await last('one', 'start', kills + 1);
      expect(next.pid).not.toBe(pid);
    }
  });

  test('a process that never becomes ready is restarted with a backoff', async () => {
    run([[spec('bad', HOPELESS)], [spec('good', GOOD)]]);
    await last('bad', 'start', 5);
    const times = notes('bad').map(({ at }) => at);
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(gaps[3]).toBeGreaterThan(gaps[0] ?? 0);
    expect(gaps[2]).toBeGreaterThanOrEqual(500);
    expect(gaps[3]).toBeGreaterThanOrEqual(1_000);
    expect(notes('good')).toHaveLength(1);
  });

  test('a missing program is retried while the others run', async () => {
    const missing = { name: 'missing', command: [join(scratch, 'missing')] };
    run([[missing, spec('good', GOOD)]]);
    await last('good', 'start', 1);
    fs.writeFileSync(
      missing.command[0] as string,
      `#!/bin/sh\nexec >>${notesPath('missing')}\necho start $$ 0\n`,
      { mode: 0o755 },
    );
    await last('missing', 'start', 1);
  });

  test('the children of a killed process end with it', async () => {
    const parent = `${PRELUDE}
      import { spawn } from 'node:child_process';
      const { pid } = spawn('sleep', ['600'], { stdio: 'ignore' });
      appendFileSync(process.env.NOTES, 'child ' + pid + ' 0\\n');
      process.send({ type: 'ready' });
      live();`;
    await run([[spec('one', parent)]]).ready;
    const child = await last('one', 'child', 1);
    process.kill((await last('one', 'start', 1)).pid, 'SIGKILL');
    await vi.waitFor(() => expect(isAlive(child.pid)).toBe(false), WAIT);
  });
});

describe('stopping', () => {
  test('proceeds group by group', async () => {
    const slow = GOOD.replace(
      "note('term'); process.exit(0)",
      "setTimeout(() => { note('term'); process.exit(0); }, 300)",
    );
    await run([[spec('api', slow)], [spec('worker', slow)], [spec('last', GOOD)]]).ready;
    stop.abort();
    await stopped;
    const [api, worker, end] = ['api', 'worker', 'last'].map(name => notes(name).at(-1)?.at ?? 0);
    expect(worker).toBeGreaterThanOrEqual((api ?? 0) + 300);
    expect(end).toBeGreaterThanOrEqual(worker ?? 0);
  });

  test('a process that does not end is killed after the grace', async () => {
    await run([[spec('one', STUBBORN)]], 200).ready;
    stop.abort();
    await stopped;
    expect(notes('one').map(({ what }) => what)).toEqual(['start', 'term']);
    expect(isAlive(notes('one')[0]?.pid ?? 0)).toBe(false);
  });

  test('a forced shutdown kills at once, in every group', async () => {
    await run([[spec('one', STUBBORN)], [spec('two', STUBBORN)]]).ready;
    stop.abort();
    await last('one', 'term', 1);
    forceShutdown.abort();
    await stopped;
    for (const name of ['one', 'two']) expect(isAlive(notes(name)[0]?.pid ?? 0)).toBe(false);
  });

  test('does not wait for a backoff', async () => {
    run([[spec('bad', HOPELESS)]]);
    await last('bad', 'start', 4);
    stop.abort();
    await stopped;
    const { length } = notes('bad');
    expect(length).toBeLessThan(6);
  });
});

test('no process survives a killed supervisor, not even a frozen one', async () => {
  const program = `
    import { supervise } from ${JSON.stringify(compiled)};
    const log = { debug() {}, warn() {} };
    const { signal } = new AbortController();
    const groups = JSON.parse(process.argv[2]);
    await supervise({ groups, log, signal, forceShutdown: signal }).stopped;`;
  fs.writeFileSync(join(scratch, 'supervisor.mjs'), program);
  const deaf = GOOD.replace("process.on('disconnect'", "process.on('nothing'");
  const groups = [[spec('good', GOOD), spec('frozen', GOOD), spec('deaf', deaf)]];
  const supervisor = spawn(
    process.execPath,
    [join(scratch, 'supervisor.mjs'), JSON.stringify(groups)],
    {
      stdio: 'inherit',
    },
  );
  const started = await Promise.all(['good', 'frozen', 'deaf'].map(name => last(name, 'start', 1)));
  process.kill(started[1]?.pid ?? 0, 'SIGSTOP');
  supervisor.kill('SIGKILL');
  await once(supervisor, 'exit');
  await last('good', 'disconnect', 1);
  await vi.waitFor(() => expect(started.filter(({ pid }) => isAlive(pid))).toEqual([]), WAIT);
});

function run(groups: ProcessSpec[][], graceMs = 10_000) {
  const log = pino({ level: 'silent' });
  const supervisor = supervise({
    groups,
    log,
    signal: stop.signal,
    forceShutdown: forceShutdown.signal,
    graceMs,
  });
  stopped = supervisor.stopped;
  return supervisor;
}

function spec(name: string, script: string): ProcessSpec {
  const path = join(scratch, `${name}.mjs`);
  fs.writeFileSync(path, script);
  return { name, command: [process.execPath, path], env: { NOTES: notesPath(name) } };
}

function notesPath(name: string): string {
  return join(scratch, `${name}.notes`);
}

function notes(name: string): { what: string; pid: number; at: number }[] {
  if (!fs.existsSync(notesPath(name))) return [];
  const lines = fs.readFileSync(notesPath(name), 'utf8').trim().split('\n').filter(Boolean);
  return lines.map(line => {
    const [what = '', pid, at] = line.split(' ');
    return { what, pid: Number(pid), at: Number(at) };
  });
}

/** Waits for the n-th note of a kind and returns it. */
async function last(name: string, what: string, count: number) {
  await vi.waitFor(() => {
    expect(notes(name).filter(one => one.what === what).length).toBeGreaterThanOrEqual(count);
  }, WAIT);
  const found = notes(name).filter(one => one.what === what)[count - 1];
  if (!found) throw new Error(`${name} wrote no ${what}`);
  return found;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

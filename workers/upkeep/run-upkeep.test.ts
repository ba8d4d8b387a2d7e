import { afterEach, expect, test } from 'vitest';
import { createLog } from '../../shared/process/log.ts';
import { runSteps } from './run-upkeep.ts';

let stopping = new AbortController();
let running: Promise<void> | undefined;

afterEach(async () => {
  stopping.abort();
  await running;
});

/** Runs the steps every 20 ms until the test ends; counts their runs and keeps what is logged. */
function start(steps: Record<string, () => Promise<void>>) {
  const runs: Record<string, number> = {};
  const logged: { step: string; err: { message: string } }[] = [];
  const log = createLog({
    level: 'warn',
    name: 'test',
    write: line => void logged.push(JSON.parse(line)),
  });
  stopping = new AbortController();
  const table = Object.entries(steps).map(([name, work]) => ({
    name,
    every: 20,
    run: () => {
      runs[name] = (runs[name] ?? 0) + 1;
      return work();
    },
  }));
  running = runSteps(table, { log, stopping: stopping.signal });
  return { runs, logged };
}

test('a step that fails is logged and run again, and the others run', async () => {
  const { runs, logged } = start({
    failing: async () => {
      throw new Error('no');
    },
    throwing: () => {
      throw new Error('at once');
    },
    last: async () => {},
  });
  await expect.poll(() => runs.last).toBeGreaterThan(2);
  expect(runs.failing).toBeGreaterThan(2);
  expect(runs.throwing).toBeGreaterThan(2);
  expect(logged).toContainEqual(
    expect.objectContaining({ step: 'failing', err: expect.objectContaining({ message: 'no' }) }),
  );
});

test('a database that is unreachable fills no log: the heartbeat tells of it', async () => {
  const { runs, logged } = start({
    failing: async () => {
      throw Object.assign(new Error('write CONNECTION_CLOSED'), { code: 'CONNECTION_CLOSED' });
    },
    slow: async () => {
      throw Object.assign(new Error('statement timeout'), { severity: 'ERROR', code: '57014' });
    },
  });
  await expect.poll(() => runs.slow).toBeGreaterThan(2);
  expect(runs.failing).toBeGreaterThan(2);
  expect(new Set(logged.map(({ step }) => step))).toEqual(new Set(['slow']));
});

test('a step that hangs does not run twice at once, and the others run', async () => {
  let release = () => {};
  const hanging = new Promise<void>(resolve => {
    release = resolve;
  });
  const { runs } = start({ hanging: () => hanging, last: async () => {} });
  await expect.poll(() => runs.last).toBeGreaterThan(2);
  expect(runs.hanging).toBe(1);
  release();
  await expect.poll(() => runs.hanging).toBeGreaterThan(2);
});

test('no step starts once the process stops, and the end waits for those that run', async () => {
  let ended = false;
  const { runs } = start({
    slow: async () => {
      await new Promise(resolve => setTimeout(resolve, 100));
      ended = true;
    },
    last: async () => {},
  });
  await expect.poll(() => runs.slow).toBe(1);
  stopping.abort();
  await running;
  expect(ended).toBe(true);
  expect(runs.last).toBeUndefined();
});

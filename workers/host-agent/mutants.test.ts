import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { findMarked, makeMark } from '../../test/faults/stubborn-processes.ts';
import {
  collect,
  processesOf,
  readProc,
  runDirectory,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import {
  mountSmallDisk,
  NEEDS_MOUNT,
  unmountSmallDisk,
  useUpInodes,
} from '../../test/harness/hosts/small-disk.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { loadAgentFile } from './agent-file.ts';

const MiB = 1024 * 1024;
const DASH = findProgram('dash') ?? '/bin/sh';
const harness = useAgentHarness();

/** A host with this agent. A known shell skips the check of the file's content. */
function makeHostWith(content: string): LocalExec {
  const host = harness.makeHost(DASH);
  install(host, content);
  return host;
}

function install(host: LocalExec, content: string): void {
  const base = join(host.account.home, '.windlass');
  mkdirSync(base, { mode: 0o700 });
  writeFileSync(join(base, loadAgentFile().name), content);
}

const connect = (host: LocalExec, spoolLimitBytes = 2 ** 30) =>
  harness.connect(host, { shell: DASH, spoolLimitBytes });

interface Mutant {
  what: string;
  /** Occurs once in the agent; `instead` disables the mechanism. */
  text: string;
  instead: string;
  /** Returns what a client sees; undefined if this machine cannot show it. */
  show(content: string): Promise<unknown>;
  right: unknown;
  wrong: unknown;
}

const mutants: Mutant[] = [
  {
    what: 'the fence: a delayed request runs the command a second time',
    text: '  set -C\n',
    instead: '',
    async show(content) {
      const { host, child, held } = await runTwice(content);
      process.kill(child, 'SIGCONT');
      await held;
      return readFileSync(join(host.account.home, 'ledger'), 'utf8');
    },
    right: 'ran\n',
    wrong: 'ran\nran\n',
  },
  {
    what: 'the birth that waits for requested attempts: a child without a claim starts a forgotten run again',
    text: '    is_settled $((settled + 1)) || return 1\n',
    instead: '',
    async show(content) {
      // Where no /proc tells of a child whose directory is gone.
      const blind = content.replace('/proc/[0-9]*/fd/0', '/proc/none/fd/0');
      expect(blind).not.toBe(content);
      const { host, child, held, first, second } = await runTwice(blind);
      const late = held.catch(() => {});
      await second.forget('once');
      await first.ping();
      await second.ping();
      // A serve ends after a last sweep.
      second.close();
      await second.closed;
      process.kill(child, 'SIGCONT');
      await waitFor(() => !existsSync(`/proc/${child}`), { what: 'the end of the late child' });
      await Promise.race([late, first.ping()]);
      return readFileSync(join(host.account.home, 'ledger'), 'utf8');
    },
    right: 'ran\n',
    wrong: 'ran\nran\n',
  },
  {
    what: "the supervisor's backpressure: output that is never acknowledged fills the disk",
    text: '  [ $((spooled + at_e - oldest)) -lt "$limit" ]\n',
    instead: '  true\n',
    async show(content) {
      const host = makeHostWith(content);
      const client = await connect(host, 2 * MiB);
      const command = `head -c ${40 * MiB} /dev/zero; touch done; sleep 300`;
      await client.run({ id: 'much', token: 'one', command }).next();
      const spooled = () => sizeOf(runDirectory(host, 'much'));
      let before = -1;
      let since = 0;
      await waitFor(
        () => {
          const now = spooled();
          if (now !== before || !isHeldBack(host)) since = Date.now();
          before = now;
          // Between two segments it stands still as well, on a busy machine for a while.
          const isStill = before >= 2 * MiB && Date.now() - since > 1_500;
          return isStill || existsSync(join(host.account.home, 'done'));
        },
        { what: 'a command that waits, or has printed all' },
      );
      await client.stop('much');
      return before < 8 * MiB;
    },
    right: true,
    wrong: false,
  },
  {
    what: "the boot id: after a reboot another process with the supervisor's PID is taken for it",
    text: '  elif [ "$its_boot" = "$boot" ] && { is_alive "$pid" "$its_start" || has_waiter || has_heir; }; then\n',
    instead: '  elif is_alive "$pid" "$its_start" || has_waiter || has_heir; then\n',
    async show(content) {
      const host = makeHostWith(content);
      const client = await connect(host);
      await client.run({ id: 'old', token: 'one', command: 'exec sleep 300' }).next();
      const record = join(runDirectory(host, 'old'), 'supervisor');
      const [node = '', , supervisor] = readFileSync(record, 'utf8').split(' ');
      process.kill(Number(supervisor), 'SIGKILL');
      const other = spawn('sleep', ['300'], { stdio: 'ignore' });
      const pid = String(other.pid);
      const start = readProc(pid, 'stat').split(') ')[1]?.split(' ')[19];
      writeFileSync(record, `${node} an-earlier-boot ${pid} ${start}\n`);
      const { value } = await client.follow({ id: 'old', stdout: 0, stderr: 0 }).next();
      other.kill();
      await client.stop('old');
      return value;
    },
    right: { type: 'lost', cause: 'reboot' },
    wrong: { type: 'running' },
  },
  {
    what: 'the mark in the environment: a child without session and parent survives the stop',
    text: 'grep -lsF "WINDLASS_RUN=$dir"',
    instead: 'grep -lsF "WINDLASS_RUN=none"',
    show: content => countAfterStop(content, sleep => `(setsid ${sleep} &)`),
    right: 0,
    wrong: 1,
  },
  {
    what: 'the search for descendants: a child without session and mark survives the stop',
    text: '      others="$others $parent:$pid:$start"\n',
    instead: '      :\n',
    show: content => countAfterStop(content, sleep => `env -i PATH="$PATH" setsid ${sleep} &`),
    right: 0,
    wrong: 1,
  },
  {
    what: 'the spare record: where no file can be created the end of a run is lost',
    text: ' || mv "$dir/spare" "$dir/$end" ||',
    instead: ' || return 0 ||',
    async show(content) {
      const host = harness.makeHost(DASH);
      if (!mountSmallDisk(host, 'nr_inodes=200')) return undefined;
      try {
        install(host, content);
        const client = await connect(host);
        await useUpInodes(host, client).catch(() => {});
        client.close();
        await client.closed;
        const left = () => processesOf(host).filter(line => / supervise /.test(line)).length === 0;
        await waitFor(left, { what: 'the end of the supervisors' });
        const files = readdirSync(runDirectory(host, 'greedy'));
        return files.some(name => name.startsWith('end.7.'));
      } finally {
        await unmountSmallDisk(harness, host);
      }
    },
    right: true,
    wrong: false,
  },
];

describe.each(mutants)('without $what', ({ text, instead, show, right, wrong }) => {
  const real = loadAgentFile().content.toString();

  test('the text is part of the agent', () => {
    expect(real.split(text).length).toBe(2);
    expect(real.replace(text, () => instead)).not.toBe(real);
  });

  test.each([
    ['the agent prevents it', real, right],
    ['the agent without it does not', real.replace(text, () => instead), wrong],
  ])('%s', async (_, content, seen) => {
    let shown = await show(content);
    // Which process comes first is chance: what a mutant breaks must show in one of three tries.
    for (let n = 0; n < 2 && content !== real && !isDeepStrictEqual(shown, seen); n++)
      shown = await show(content);
    if (shown === undefined) return expect(process.getuid?.(), NEEDS_MOUNT).not.toBe(0);
    expect(shown).toEqual(seen);
  });
});

/** A run that a second client requests and sees ended, while the child that the first one's request went to is stopped. */
async function runTwice(content: string) {
  const host = makeHostWith(content);
  const first = await connect(host);
  const second = await connect(host);
  const run = { id: 'once', command: 'echo ran >>ledger' };
  const child = await waitFor(() => findPreparedChild(host), { what: 'an attempt' });
  process.kill(child, 'SIGSTOP');
  const held = collect({ client: first, id: 'once', events: first.run({ ...run, token: 'a' }) });
  // Requests are served in order, so the run was requested.
  await first.ping();
  await collect({ client: second, id: 'once', events: second.run({ ...run, token: 'b' }) });
  return { host, first, second, child, held };
}

/** The child of the attempt that the first serve has prepared. */
function findPreparedChild(host: LocalExec): number | undefined {
  const runs = join(host.account.home, '.windlass/runs');
  const name = readdirSync(runs).find(run => run.includes(`-${host.pids[0]}-`));
  if (!name || !existsSync(join(runs, name, 'ready'))) return undefined;
  return Number.parseInt(readFileSync(join(runs, name, 'child'), 'utf8'), 10);
}

const isHeldBack = (host: LocalExec) =>
  processesOf(host).some(line =>
    readProc(line.split(' ')[0] ?? '', 'wchan').includes('pipe_write'),
  );

function sizeOf(directory: string): number {
  const segments = readdirSync(directory).filter(name => name.startsWith('o.'));
  return segments.reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
}

/** Runs a command that starts a child in this way, stops the run, and counts the child's remaining processes. */
async function countAfterStop(content: string, start: (sleep: string) => string): Promise<number> {
  const client = await connect(makeHostWith(content));
  const mark = makeMark();
  const script = `exec >/dev/null 2>&1\n${start(`sleep ${mark}`)}\nsleep 300`;
  await client.run({ id: 'parent', token: 'one', script }).next();
  await waitFor(() => findMarked(mark).some(line => /^\d+ sleep /.test(line)), { what: 'a child' });
  await client.stop('parent');
  const left = findMarked(mark);
  for (const line of left) process.kill(Number.parseInt(line, 10), 'SIGKILL');
  return left.length;
}

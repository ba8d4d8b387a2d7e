import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import {
  processesOf,
  readProc,
  SHELLS,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { waitFor } from '../../test/harness/wait-for.ts';

const harness = useAgentHarness();

/** Another account than this process's, which is root. */
const OTHER = 61_239;

/** A process of this account whose session's leader has ended. */
function leaveSession(host: LocalExec, beside = '') {
  const script = `exec setsid --wait sh -c '${beside}sleep 300 >/dev/null 2>&1 & echo $$ $!'`;
  const { home, env, uid } = host.account;
  const given = { cwd: home, env: { ...env, HOME: home }, uid, gid: uid };
  const told = execFileSync('sh', ['-c', script], { ...given, encoding: 'utf8' });
  const [leader = 0, member = 0] = told.split(' ').map(Number);
  return { leader, member };
}

/** A program that this account may execute only: its descriptors cannot be read. */
function makeSealed(host: LocalExec, name: string): void {
  const { home, shell } = host.account;
  host.account.uid = OTHER;
  for (const path of [home, shell]) chmodSync(dirname(path), 0o711);
  chownSync(home, OTHER, OTHER);
  copyFileSync(findProgram('sleep') ?? '', join(home, name));
  chmodSync(join(home, name), 0o711);
}

/** What a run leaves that lost all of its processes. */
function leaveRun(host: LocalExec, { supervisor, child }: { supervisor: string; child: string }) {
  const base = join(host.account.home, '.windlass');
  const directory = join(base, 'runs/left');
  mkdirSync(directory);
  writeFileSync(join(directory, 'supervisor'), `${supervisor} ${2 ** 30} 1\n`);
  writeFileSync(join(directory, 'child'), `${child}\n`);
  writeFileSync(join(base, 'started/old'), 'one left\n');
  const { uid } = host.account;
  if (uid !== undefined) chownSync(directory, uid, uid);
  return directory;
}

const sessionOf = (pid: number) => readProc(`${pid}`, 'stat').split(') ')[1]?.split(' ')[3];

describe.each(SHELLS)('a lost run whose PID has led another session since, under %s', shell => {
  test.each(['an earlier boot', 'this boot'])(
    'is of %s: its stop ends nobody else',
    async which => {
      const host = harness.makeHost(shell);
      const client = await harness.connect(host);
      const { node, boot } = client.hello;
      const { leader, member } = leaveSession(host);
      try {
        expect(sessionOf(member)).toBe(`${leader}`);
        const supervisor = `${node} ${which === 'this boot' ? boot : 'an-earlier-boot'}`;
        const directory = leaveRun(host, { supervisor, child: `${leader} 1` });
        const result = await client.stop('old');
        expect(processesOf(host)).toContain(`${member} sleep 300 `);
        if (which === 'this boot') return;
        expect(result).toEqual({ result: 'ended' });
        expect(existsSync(join(directory, 'stopped'))).toBe(false);
      } finally {
        process.kill(member);
      }
    },
  );
});

test.each(SHELLS)(
  'a stop ends what has no mark but a stream of a command that ended, under %s',
  async shell => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const script = 'env -i PATH="$PATH" HOME="$HOME" sleep 303 & exit';
    const events = client.run({ id: 'unmarked', token: 'one', script });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const left = () => processesOf(host).filter(line => / sleep 303 $/.test(line));
    const isAlone = () =>
      left().length === 1 &&
      !existsSync(`/proc/${sessionOf(Number.parseInt(left()[0] ?? '', 10))}`);
    await waitFor(isAlone, { what: 'the end of the command alone' });
    expect(await client.stop('unmarked')).toEqual({ result: 'killed' });
    expect(left()).toEqual([]);
  },
);

test.skipIf(process.getuid?.() !== 0).each(SHELLS)(
  'a stop ends a program that its account may execute only, though its descriptors cannot be read, under %s',
  async shell => {
    const host = harness.makeHost(shell);
    makeSealed(host, 'solver');
    const client = await harness.connect(host);
    const events = client.run({ id: 'sealed', token: 'one', script: './solver 304 & sleep 0.2' });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const find = () => processesOf(host).find(line => / .*solver 304 $/.test(line));
    const left = Number.parseInt((await waitFor(find, { what: 'the program' })) ?? '', 10);
    expect(statSync(`/proc/${left}/environ`).uid).toBe(0);
    await waitFor(() => !existsSync(`/proc/${sessionOf(left)}`), { what: 'the end of its leader' });
    expect(await client.stop('sealed')).toEqual({ result: 'killed' });
    expect(find()).toBeUndefined();
  },
);

test.each(SHELLS)(
  'a stop ends the whole session of a command that ended, where one of it has the mark, under %s',
  async shell => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const script = 'sleep 301 & env -i PATH="$PATH" HOME="$HOME" sleep 302 & exit';
    const events = client.run({ id: 'ended', token: 'one', script });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const left = () => processesOf(host).filter(line => / sleep 30[12] $/.test(line));
    const isAlone = () =>
      left().length === 2 &&
      left().every(line => {
        const pid = Number.parseInt(line, 10);
        return !existsSync(`/proc/${sessionOf(pid)}`);
      });
    await waitFor(isAlone, { what: 'the end of the command alone' });
    expect(await client.stop('ended')).toEqual({ result: 'killed' });
    expect(left()).toEqual([]);
  },
);

test.skipIf(process.getuid?.() !== 0).each(SHELLS)(
  'a stop ends no other session for a program in it that the account may execute only, under %s',
  async shell => {
    const host = harness.makeHost(shell);
    makeSealed(host, 'solver');
    const client = await harness.connect(host);
    const { leader } = leaveSession(host, './solver 300 >/dev/null 2>&1 & ');
    const lives = () => processesOf(host).filter(line => / 300 $/.test(line));
    try {
      const { node, boot } = client.hello;
      leaveRun(host, { supervisor: `${node} ${boot}`, child: `${leader} 1` });
      await client.stop('old');
      expect(lives()).toHaveLength(2);
    } finally {
      for (const line of lives()) process.kill(Number.parseInt(line, 10));
    }
  },
);

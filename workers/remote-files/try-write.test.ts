import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useAgentHarness } from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { meansFull, tryWrite } from './try-write.ts';

const harness = useAgentHarness();
const patient = new AbortController().signal;

const tryIn = (host: LocalExec, temporary: string, path = 'none') => {
  const { home } = host.account;
  return tryWrite(host, { path: join(home, path), temporary: join(home, temporary) }, patient);
};

/** A host whose dd does this instead. */
function withDd(script: string) {
  const host = harness.makeHost('/bin/sh');
  const programs = join(host.account.home, 'bin');
  mkdirSync(programs);
  writeFileSync(join(programs, 'dd'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
  return host;
}

test.each([
  ["dd: error writing 'standard output': Disk quota exceeded", true],
  ["dd: error writing 'standard output': No space left on device", true],
  ['dd: closing output file: Quota exceeded', true],
  ["dd: error writing 'standard output': File too large", false],
])('where the host says `%s`, its disk is full: %s', async (said, isFull) => {
  const host = withDd(`echo "${said}" >&2; exit 1`);
  const words = await tryIn(host, 'file');
  expect([words, meansFull(words)]).toEqual([said.split(': ').at(-1), isFull]);
});

test('a disk with room is not full, also below directories that are missing', async () => {
  const host = harness.makeHost('/bin/sh');
  const { home } = host.account;
  const before = readdirSync(home);
  expect(await tryIn(host, "it's")).toBe(undefined);
  expect(await tryIn(host, 'no/folder/x')).toBe(undefined);
  expect(readdirSync(home)).toEqual(before);
});

test('what others put there is not written to', async () => {
  const host = harness.makeHost('/bin/sh');
  const { home } = host.account;
  const victim = join(home, 'thesis.txt');
  writeFileSync(victim, 'mine');
  for (const plant of [linkSync, symlinkSync]) {
    for (const name of ['file', 'file-room']) plant(victim, join(home, name));
    expect(await tryIn(host, 'file')).toMatch(/exist/i);
    expect(readFileSync(victim, 'utf8')).toBe('mine');
    for (const name of ['file', 'file-room']) rmSync(join(home, name));
  }
});

test('a name that the host does not take is told of', async () => {
  const host = harness.makeHost('/bin/sh');
  expect(await tryIn(host, 'file', 'n'.repeat(300))).toBe('File name too long');
});

test('a host that says more than anybody would is not listened to', async () => {
  const host = withDd("head -c 40000000 /dev/zero | tr '\\0' x >&2");
  await expect(tryIn(host, 'file')).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
});

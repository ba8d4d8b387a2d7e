import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { AgentHarness } from '../../test/harness/hosts/agent-harness.ts';
import { meansFull, tryWrite } from './try-write.ts';

const harness = new AgentHarness();
afterAll(() => harness.clean());
const patient = new AbortController().signal;

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
  const words = await tryWrite(host, join(host.account.home, 'file'), patient);
  expect([words, meansFull(words)]).toEqual([said.split(': ').at(-1), isFull]);
});

test('a disk with room is not full, also below directories that are missing', async () => {
  const host = harness.makeHost('/bin/sh');
  const path = join(host.account.home, "it's");
  writeFileSync(path, 'a');
  expect(await tryWrite(host, path, patient)).toBe(undefined);
  expect(readFileSync(path).length).toBe(65_537);
  expect(await tryWrite(host, join(host.account.home, 'no/folder/x'), patient)).toBe(undefined);
  expect(existsSync(join(host.account.home, 'x'))).toBe(false);
});

test('a host that says more than anybody would is not listened to', async () => {
  const host = withDd("head -c 40000000 /dev/zero | tr '\\0' x >&2");
  await expect(tryWrite(host, join(host.account.home, 'file'), patient)).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
});

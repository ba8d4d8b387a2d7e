import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect, test } from 'vitest';
import { AgentHarness } from '../../test/harness/agent-harness.ts';
import { openRemoteFile } from './read-file.ts';

const harness = new AgentHarness();
afterAll(() => harness.clean());

test.each(['9'.repeat(60), '9007199254740993'])(
  'a file that a host says to be %s bytes long is none',
  async size => {
    const host = harness.makeHost('/bin/sh');
    const programs = join(host.account.home, 'bin');
    mkdirSync(programs);
    writeFileSync(join(programs, 'ls'), `#!/bin/sh\necho - 1 0 0 ${size} x\n`, { mode: 0o755 });
    const path = join(host.account.home, 'file');
    writeFileSync(path, 'text');
    host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
    await expect(openRemoteFile(host, { path })).rejects.toMatchObject({
      code: 'remote_connection_failed',
    });
  },
);

test('the state of a file is another one after a change that keeps its size and its time', async () => {
  const host = harness.makeHost('/bin/sh');
  const path = join(host.account.home, 'file');
  const write = (content: string) => {
    writeFileSync(path, content);
    utimesSync(path, 1_000_000, 1_000_000);
  };
  const read = async () => {
    const { tag, bytes } = await openRemoteFile(host, { path });
    return { tag, content: await text(bytes) };
  };
  write('first');
  const before = await read();
  expect(before).toEqual({ tag: expect.stringMatching(/^[0-9a-f]{32}$/), content: 'first' });
  expect(await read()).toEqual(before);
  write('other');
  const after = await read();
  expect([after.content, after.tag === before.tag]).toEqual(['other', false]);
});

test.each(['exit 1', 'echo unknown option', 'echo two; echo lines'])(
  'a file whose host has a stat that does `%s` has no state, and all its bytes',
  async script => {
    const host = harness.makeHost('/bin/sh');
    const programs = join(host.account.home, 'bin');
    mkdirSync(programs);
    writeFileSync(join(programs, 'stat'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
    const path = join(host.account.home, 'file');
    writeFileSync(path, 'text');
    const { tag, bytes } = await openRemoteFile(host, { path });
    expect([tag, await text(bytes)]).toEqual([undefined, 'text']);
  },
);

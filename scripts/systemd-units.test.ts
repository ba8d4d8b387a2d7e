import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { makeTempDir } from '../test/harness/files/temp-dir.ts';
import { describeUnless, missingPrograms } from '../test/harness/skip.ts';

const FOLDER = 'docs/systemd';
const UNITS = readdirSync(FOLDER);
const read = (unit: string) => readFileSync(join(FOLDER, unit), 'utf8');

describe('each unit for systemd', () => {
  test.each(UNITS)('%s starts a program that there is, and lets it stop in order', unit => {
    const text = read(unit);
    const [, program = ''] =
      /^ExecStart=(?:\/usr\/bin\/env \S+ )?\/usr\/bin\/node dist\/(\S+)\.js/m.exec(text) ?? [];
    expect(existsSync(`${program}.ts`)).toBe(true);
    for (const line of ['KillMode=mixed', 'ProtectSystem=strict', 'NoNewPrivileges=yes'])
      expect(text.split('\n')).toContain(line);
    expect(text).toMatch(/^User=windlass/m);
  });
});

describeUnless(missingPrograms('systemd-analyze'), 'systemd', () => {
  const scratch = makeTempDir('units');
  afterAll(() => scratch.remove());

  test.each(UNITS)('accepts %s', unit => {
    const path = join(scratch.path, unit);
    // Where this machine's node is.
    writeFileSync(path, read(unit).replace('/usr/bin/node', process.execPath));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], {
      encoding: 'utf8',
    });
    expect([status, stderr.split('\n').filter(line => line.includes(unit))]).toEqual([0, []]);
  });
});

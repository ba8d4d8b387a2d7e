import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { launchScript, silently } from './launch-script.ts';

/** What may be /bin/sh, and the account's bash, which reads the script itself. */
const READERS = [['dash'], ['bash'], ['bash', '--posix'], ['busybox', 'sh'], ['ksh']];

describe.each(READERS.filter(([program = '']) => findProgram(program)))('%s %s', (...reader) => {
  const [program = '', ...options] = reader.filter(word => word !== undefined);
  const directory = makeTempDir('launch-script');
  afterAll(() => directory.remove());
  const SHELL = findProgram('bash') ?? '/bin/sh';
  const file = join(directory.path, 'script');

  function run(command: string, more: object = {}, env: Record<string, string> = {}) {
    writeFileSync(file, silently(launchScript({ command, ...more }, 'id')));
    const { stdout, stderr, status, signal } = spawnSync('setsid', [program, ...options, file], {
      env: { PATH: process.env.PATH, HOME: directory.path, SHELL, ...env },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      maxBuffer: 4 << 20,
    });
    return { stdout, stderr, status: signal === null ? status : 128 + constants.signals[signal] };
  }

  test('a signal that ends a command prints nothing, least of all its input', () => {
    for (const more of [{ cwd: '/' }, { env: { OWN: 'x' } }, { stdin: 'hidden\n' }])
      for (const signal of ['SEGV', 'KILL', 'TERM'] as const)
        expect(run(`kill -${signal} $$`, more)).toEqual({
          stdout: '',
          stderr: '',
          status: 128 + constants.signals[`SIG${signal}`],
        });
  });

  test('what a command sends to its process group ends it as it would without an input', () => {
    const command = 'trap "echo caught; exit 3" TERM HUP INT; kill -TERM 0; sleep 9';
    expect(run(command, { stdin: 'hidden\n' })).toEqual({
      stdout: 'caught\n',
      stderr: '',
      status: 3,
    });
  });

  test('an account that has its shells say what they run is told of the command alone', () => {
    const { stdout, stderr } = run('cat', { stdin: 'hidden\n' }, { SHELLOPTS: 'xtrace:verbose' });
    expect(stdout).toBe('hidden\n');
    expect(stderr).not.toContain('hidden');
  });

  test('an input of 1 MiB comes whole, whether it is read late or not at all', () => {
    const stdin = `${"it's one\n".repeat((1 << 20) / 9)}end`;
    const late = run('sleep 0.2; cat', { stdin });
    expect(late.stdout === stdin).toBe(true);
    expect(run('exit 4', { stdin })).toEqual({ stdout: '', stderr: '', status: 4 });
  });
});

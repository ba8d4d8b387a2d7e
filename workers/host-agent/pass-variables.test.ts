import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { passVariables } from './pass-variables.ts';

const SHELLS = [['dash'], ['bash'], ['bash', '--posix'], ['busybox', 'sh'], ['ksh']];

describe.each(SHELLS.filter(([program = '']) => findProgram(program)))('%s %s', (...shell) => {
  const [program = '', ...options] = shell.filter(word => word !== undefined);
  const PATH = '/usr/local/bin:/usr/bin:/bin';
  const read = (script: string) =>
    execFileSync(program, [...options, '-c', script], {
      env: { PATH, HOME: '/nowhere' },
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
    });
  const pass = (env: Record<string, string>) => {
    const { before, words } = passVariables(env);
    const script = [...before, ['exec', ...words, '/usr/bin/env -0'].join(' ')].join('\n');
    const entries = read(script).split('\0').filter(Boolean);
    const at = (entry: string) => entry.indexOf('=');
    return new Map(entries.map(entry => [entry.slice(0, at(entry)), entry.slice(at(entry) + 1)]));
  };

  test('passes variables on byte for byte', () => {
    const env = { A: `it's "$HOME" \`id\`\n\\n ü 😀 `, B: '', TOKEN_1: '-n', a: '~', dir: '*' };
    expect([...pass(env)]).toEqual(expect.arrayContaining(Object.entries(env)));
    expect(passVariables(env).words).toEqual([]);
  });

  test('puts no secret into arguments that is named like what a shell has', () => {
    const names = [
      'MAILGUN_API_KEY',
      'COMPOSE_PASSWORD',
      'LD_API_KEY',
      'HOSTING_TOKEN',
      'SH_TOKEN',
    ];
    const env = Object.fromEntries(names.map(name => [name, 'hidden']));
    expect(passVariables(env).words).toEqual([]);
    expect([...pass(env)]).toEqual(expect.arrayContaining(Object.entries(env)));
  });

  test('passes on each variable that it has of its own', () => {
    const names = read('set').match(/^[A-Za-z_][A-Za-z0-9_]*(?==)/gm) ?? [];
    expect(names).toContain('IFS');
    const more = ['UID', 'EUID', 'GID', 'RANDOM', 'SECONDS', 'LINENO', 'OPTIND', 'HISTCMD', 'ENV'];
    const env = Object.fromEntries([...names, ...more].map(name => [name, '1 x']));
    const passed = pass(env);
    for (const name of Object.keys(env)) expect([name, passed.get(name)]).toEqual([name, '1 x']);
  });
});

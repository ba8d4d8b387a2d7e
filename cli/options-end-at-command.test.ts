import { Command } from 'commander';
import { expect, test } from 'vitest';
import { endOptionsAtCommand } from './options-end-at-command.ts';

/** What `p run` makes of words. */
function read(words: string[]): { host: string; command: string[]; user?: string; d?: boolean } {
  let read: { host: string; command: string[] } | undefined;
  const program = new Command('p').enablePositionalOptions().exitOverride();
  program.configureOutput({ writeErr: () => {} });
  const run = program.command('run').argument('<host>').argument('<command...>');
  endOptionsAtCommand(run.option('--user <name>').option('-d'));
  run.action((host, command, options) => {
    read = { host, command, ...options };
  });
  program.parse(['run', ...words], { from: 'user' });
  if (!read) throw new Error('It has not run.');
  return read;
}

test.each([
  [['lab', 'uname', '-a'], { host: 'lab', command: ['uname', '-a'] }],
  [['lab', 'sort', '-d', '--user', 'x'], { host: 'lab', command: ['sort', '-d', '--user', 'x'] }],
  [['lab', '--', 'uname', '-a'], { host: 'lab', command: ['uname', '-a'] }],
  [['lab', '--', '-d'], { host: 'lab', command: ['-d'] }],
  [['lab', 'git', 'log', '--', 'x'], { host: 'lab', command: ['git', 'log', '--', 'x'] }],
  [['lab', 'ls', '--help'], { host: 'lab', command: ['ls', '--help'] }],
  [['-d', 'lab', 'ls', '-d'], { host: 'lab', command: ['ls', '-d'], d: true }],
  [
    ['lab', '--user', 'ada', '-d', 'ls', '-l'],
    { host: 'lab', command: ['ls', '-l'], user: 'ada', d: true },
  ],
  [
    ['--user', 'ada', 'lab', '-d', '--', 'ls', '-d'],
    { host: 'lab', command: ['ls', '-d'], user: 'ada', d: true },
  ],
])('%j', (words, found) => {
  expect(read(words)).toEqual(found);
});

test.each([
  [['--usr', 'ada', 'lab', 'ls'], '--usr'],
  [['lab', '--usr', 'ada', 'ls'], '--usr'],
  [['lab'], 'command'],
  [[], 'host'],
])('%j is refused, as it names %s', (words, named) => {
  expect(() => read(words)).toThrow(named);
});

import { Command } from 'commander';
import { expect, test } from 'vitest';
import { findWords } from './find-words.ts';

const program = new Command('p');
program
  .command('run')
  .argument('<host>')
  .argument('<command...>')
  .option('--user <name>')
  .option('-d');
program.command('rows');
const group = program.command('user');
group.command('add').option('--administrator');
group.command('hidden', { hidden: true });
const wordsOf = async (argument: string) => (argument === 'host' ? ['lab', 'cluster'] : []);

test.each([
  [[''], ['run', 'rows', 'user', 'help']],
  [['r'], ['run', 'rows']],
  [
    ['user', ''],
    ['add', 'help'],
  ],
  [['user', 'add', '--a'], ['--administrator']],
  [
    ['run', ''],
    ['lab', 'cluster'],
  ],
  [['run', '--user', 'x', 'l'], ['lab']],
  [['run', '--user', ''], []],
  [['run', '-d', 'c'], ['cluster']],
  [['run', 'lab', ''], []],
  [
    ['run', 'lab', '-'],
    ['--help', '--user'],
  ],
  [['run', 'lab', '--', '-'], []],
  [['run', 'lab', 'uname', '-'], []],
  [['run', 'lab', 'echo', '--user', 'l'], []],
  [['nothing', ''], []],
])('after %j stand %j', async (words, found) => {
  expect(await findWords(program, words, wordsOf)).toEqual(found);
});

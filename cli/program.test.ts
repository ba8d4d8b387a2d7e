import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { findWords } from './completion/find-words.ts';
import { createProgram } from './program.ts';
import { addServiceCommands } from './service/add-service-commands.ts';

const program = createProgram(addServiceCommands);

/** The commands that do something, by their words. */
function* listCommands(parent: Command, words: string[] = []): Generator<[string, Command]> {
  const visible = new Set(parent.createHelp().visibleCommands(parent));
  for (const command of parent.commands.filter(each => visible.has(each))) {
    const all = [...words, command.name()];
    if (command.commands.length > 0) yield* listCommands(command, all);
    else yield [all.join(' '), command];
  }
}
const commands = [...listCommands(program)];

test('there are the commands of users and of operators', () => {
  const words = commands.map(([name]) => name);
  expect(words).toEqual(expect.arrayContaining(['run', 'open', 'user disable', 'audit verify']));
  expect(words).toEqual(expect.arrayContaining(['retention show', 'retention remove', 'backup']));
});

test.each(commands)('the help of `%s` has an example of it', (name, command) => {
  let help = '';
  command.configureOutput({
    writeOut: text => {
      help += text;
    },
  });
  command.outputHelp();
  const examples = help.split('\nExample:\n')[1] ?? '';
  expect(examples).toContain(`windlass ${name}`);
});

test.each([
  ['jbs', 'jobs'],
  ['opne', 'open'],
  ['user ad', 'add'],
  ['retention shwo', 'show'],
  ['retentoin', 'retention'],
  ['audit verfiy', 'verify'],
  ['jobs --sate running', '--state'],
  ['close --jsn ID', '--json'],
])('`%s` is answered with the word that was meant: %s', async (line, meant) => {
  let said = '';
  const mistyped = createProgram(addServiceCommands);
  const listen = (command: Command) => {
    command.configureOutput({
      writeErr: text => {
        said += text;
      },
    });
    command.commands.forEach(listen);
  };
  listen(mistyped);
  await expect(mistyped.parseAsync(line.split(' '), { from: 'user' })).rejects.toThrow();
  expect(said).toContain(`(Did you mean ${meant}?)`);
});

test('what records are printed of can be printed as JSON', () => {
  const silent =
    /^(login|logout|completion|up|migrate|keys|restore|backup|audit)|cp$|(password|disable|enable|remove|delete|drain|resume)$/;
  const without = commands
    .filter(([, command]) => !command.options.some(({ long }) => long === '--json'))
    .map(([name]) => name);
  expect(without.filter(name => !silent.test(name))).toEqual([]);
});

test.each([
  ['ret', ['retention']],
  ['op', ['open']],
  ['retention ', ['show', 'remove', 'help']],
  ['retention remove --', ['--help', '--days', '--json']],
  ['close --j', ['--json']],
])('a shell completes `%s`', async (begun, words) => {
  expect(await findWords(program, begun.split(' '), async () => [])).toEqual(words);
});

import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { findWords } from './completion/find-words.ts';
import { createProgram } from './program.ts';
import { refuseServiceCommands } from './refuse-service-commands.ts';
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
  // What is printed is one command for a shell.
  const unquoted = examples.replaceAll(/'[^']*'/g, '').replace('source <(', '');
  expect(unquoted).not.toMatch(/[;<>*$`]|(?<!&)&(?!&)/);
});

/** What is said to words that are wrong. */
async function say(words: string[]): Promise<string> {
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
  await expect(mistyped.parseAsync(words, { from: 'user' })).rejects.toThrow();
  return said;
}

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
  expect(await say(line.split(' '))).toContain(`(Did you mean ${meant}?)`);
});

/** `up` goes on until it is stopped, and its log is JSON already; a shell reads the other. */
const WITHOUT_JSON = ['up', 'completion'];

test.each(commands)('`%s` can print JSON', (name, command) => {
  const hasIt = command.options.some(({ long }) => long === '--json');
  expect(hasIt).toBe(!WITHOUT_JSON.includes(name));
});

/** Its last letter came twice. */
const mistype = (word: string) => `${word}${word.at(-1)}`;

test.each(commands)(
  '`%s` with a slip is answered with it, and its option --json too',
  async (name, command) => {
    const words = name.split(' ');
    const word = words.at(-1) ?? '';
    expect(await say([...words.slice(0, -1), mistype(word)])).toContain(`(Did you mean ${word}?)`);
    const needed = command.options.flatMap(({ mandatory, long }) =>
      mandatory && long ? [long, 'x'] : [],
    );
    if (!WITHOUT_JSON.includes(name))
      expect(await say([...words, ...needed, '--jsno'])).toContain('(Did you mean --json?)');
  },
);

test.each([
  ['ret', ['retention']],
  ['op', ['open']],
  ['retention ', ['show', 'remove', 'help']],
  ['retention remove --', ['--help', '--days', '--json']],
  ['close --j', ['--json']],
  ['completion ', ['bash', 'zsh', 'fish']],
  ['run --startup ', ['once', 'each']],
  ['jobs --state failed --state q', ['queued']],
  ['token create --scope r', ['read']],
  ['jobs --host ', []],
])('a shell completes `%s`', async (begun, words) => {
  expect(await findWords(program, begun.split(' '), async () => [])).toEqual(words);
});

test('the client alone says where the commands of the service are, and does not list them', async () => {
  const client = createProgram(refuseServiceCommands);
  const theirs = createProgram(addServiceCommands).commands.map(command => command.name());
  const known = client.commands.map(command => command.name());
  expect(known.toSorted()).toEqual(theirs.toSorted());
  expect(client.helpInformation()).not.toContain('backup');
  for (const words of [['up'], ['backup', 'folder', '--json'], ['audit', 'verify']])
    await expect(client.parseAsync(words, { from: 'user' })).rejects.toThrow(
      `\`windlass ${words[0]}\` acts on the machine of the service.`,
    );
});

test('each command and each option is described in words that need no others', () => {
  const described = commands.flatMap(([name, command]) => [
    [name, command.description()],
    ...command.options.map(({ flags, description }) => [`${name} ${flags}`, description]),
  ]);
  const unclear = described.filter(([, text = '']) =>
    /^$|^(list|make|add|remove|end|let) (them|one|it|that|those)\b|^(of|for|that|as|or|how many|likewise|again)\b/.test(
      text,
    ),
  );
  expect(unclear).toEqual([]);
});

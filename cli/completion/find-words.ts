import type { Command } from 'commander';

/** Finds the words that an argument with this name may be. */
type WordsOf = (argument: string) => Promise<string[]>;

/**
 * The words that may stand in place of the last of `words`, which follow the name of the program, and begin like it. None
 * where anything may stand there, such as a file.
 */
export async function findWords(
  program: Command,
  words: string[],
  wordsOf: WordsOf,
): Promise<string[]> {
  const before = words.slice(0, -1);
  const begun = words.at(-1) ?? '';
  if (before.includes('--')) return [];
  let command = program;
  let operands = 0;
  for (let n = 0; n < before.length; n++) {
    const word = before[n] ?? '';
    const option = command.options.find(({ short, long }) => word === short || word === long);
    if (option) {
      if (option.required && ++n === before.length)
        return (option.argChoices ?? []).filter(choice => choice.startsWith(begun));
      continue;
    }
    if (word.startsWith('-')) continue;
    const next = command.commands.find(known => known.name() === word);
    if (next) command = next;
    // Options of a command on a host are its own.
    else if (command.registeredArguments[operands++]?.name() === 'command') return [];
  }
  const options = () => [
    '--help',
    ...command.options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : [])),
  ];
  const commands = () =>
    command
      .createHelp()
      .visibleCommands(command)
      .map(known => known.name());
  const isGroup = command.commands.length > 0;
  let found: string[] = [];
  if (begun.startsWith('-')) found = options();
  else if (!isGroup) {
    const argument = command.registeredArguments[operands];
    found = argument?.argChoices ?? (await wordsOf(argument?.name() ?? ''));
  } else if (operands === 0) found = commands();
  return found.filter(word => word.startsWith(begun));
}

import { type Command, InvalidArgumentError, Option } from 'commander';

export const json = () => new Option('--json', 'print JSON');
export const passwordStdin = () =>
  new Option('--password-stdin', 'read passwords from standard input, one a line, yours first');
export const account = () =>
  new Option('--user <name>', 'the account on the host; by default the one you are logged in as');
export const key = () =>
  new Option('--key <file>', 'a private key for the account; else its password is asked for');
export const jumpUser = () =>
  new Option('--jump-user <name>', 'the account on the jump host; the same by default');
export const jumpKey = () =>
  new Option(
    '--jump-key <file>',
    'a private key for that account; with --jump-user alone, its password is asked for',
  );
export const environment = () =>
  new Option(
    '--env <name=value>',
    "set a variable of the command's environment; may be repeated",
  ).argParser(collect);

/** The parser of an option that may be repeated: it collects the values. */
export const collect = (value: string, before: string[] = []) => [...before, value];

/** Lets an option with choices be repeated. */
export function repeatable(option: Option): Option {
  const check = option.parseArg;
  return option.argParser<string[]>((value, before) => {
    check?.(value, undefined as never);
    return collect(value, before);
  });
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** At least one. */
export function positiveNumber(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError('It must be at least 1.');
  return number;
}

export function decimalNumber(text: string): number {
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text)) throw new InvalidArgumentError('It must be a number.');
  return Number(text);
}

/** Ends the command's help. */
export const withExample = (command: Command, ...lines: string[]) =>
  command.addHelpText('after', ['\nExample:', ...lines].join('\n  '));

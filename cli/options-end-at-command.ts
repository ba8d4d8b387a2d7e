import type { Command } from 'commander';

/**
 * Reads the words as ssh does: options end where the command begins, which follows the host. Commander alone ends them at
 * the host.
 */
export function endOptionsAtCommand(command: Command): Command {
  command.passThroughOptions();
  const parse = command.parseOptions.bind(command);
  command.parseOptions = words => {
    const upToHost = parse(words);
    const [host, ...rest] = upToHost.operands;
    if (host === undefined) return upToHost;
    const { operands, unknown } = parse(rest);
    return { operands: [host, ...operands], unknown: [...upToHost.unknown, ...unknown] };
  };
  return command;
}

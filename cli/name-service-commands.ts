import type { Command } from 'commander';
import { CommandError } from './command-error.ts';

const NAMES = ['up', 'migrate', 'backup', 'restore', 'retention', 'audit', 'keys'];

/** Where there is no service: says of its commands where they are. */
export function nameServiceCommands(program: Command): void {
  for (const name of NAMES)
    program
      .command(name, { hidden: true })
      .argument('[words...]')
      .allowUnknownOption()
      .action(() => {
        throw new CommandError(`\`windlass ${name}\` acts on the machine of the service.`, {
          hint: 'This file is the client alone: run it there, by bin/windlass of the checkout.',
        });
      });
}

import type { Command } from 'commander';
import { CommandError } from './command-error.ts';

/** Those that add-service-commands.ts adds, which the client must not import. */
const SERVICE_COMMANDS = [
  'up',
  'migrate',
  'backup',
  'restore',
  'retention',
  'admin',
  'audit',
  'keys',
];

/** Refuses each command of the service, where there is none, and says where it is. */
export function refuseServiceCommands(program: Command): void {
  for (const name of SERVICE_COMMANDS)
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

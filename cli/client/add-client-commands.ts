import type { Command } from 'commander';
import { addAccountCommands } from './declare/account.ts';
import { addAdministration } from './declare/administration.ts';
import { addDataCommands } from './declare/data.ts';
import { addHostCommands } from './declare/hosts.ts';
import { addJobCommands } from './declare/jobs.ts';

/** Commands of a user, who may be anywhere: they call the service that `windlass login` names. */
export function addClientCommands(program: Command): void {
  program.commandsGroup('Your login:');
  addAccountCommands(program);
  program.commandsGroup('Work on hosts:');
  addHostCommands(program);
  program.commandsGroup('Jobs:');
  addJobCommands(program);
  program.commandsGroup('Data:');
  addDataCommands(program);
  program.commandsGroup('Administration:');
  addAdministration(program);
}

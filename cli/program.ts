import { Command } from 'commander';
import { addClientCommands } from './client/add-client-commands.ts';
import { addCompletion } from './completion/add-completion.ts';
import { addServiceCommands } from './service/add-service-commands.ts';

/** The command `windlass`. What a command needs is loaded when it runs. */
export function createProgram(): Command {
  const program = new Command('windlass')
    .description('Long work for scientific web applications: commands on hosts, videos, uploads.')
    .exitOverride()
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'windlass: ')),
    })
    .showHelpAfterError('Add --help to see how.');
  addClientCommands(program);
  addServiceCommands(program);
  addCompletion(program);
  return program;
}

import { Command } from 'commander';
import { RELEASE } from '../shared/process/release.ts';
import { addClientCommands } from './client/add-client-commands.ts';
import { addCompletion } from './completion/add-completion.ts';

/** The command `windlass`, with the commands that `addMore` adds. What a command needs is loaded when it runs. */
export function createProgram(addMore: (program: Command) => void = () => {}): Command {
  const program = new Command('windlass')
    .description('Long work for scientific web applications: commands on hosts, videos, uploads.')
    .version(RELEASE, '--version', 'print the release of this program')
    .exitOverride()
    // Those of a command on a host are not ours.
    .enablePositionalOptions()
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'windlass: ')),
    })
    .showHelpAfterError('Add --help to see how.');
  addClientCommands(program);
  addMore(program);
  program.commandsGroup('Shells:');
  addCompletion(program);
  return program;
}

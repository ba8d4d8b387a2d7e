import type { Command } from 'commander';
import { config as readDotEnv } from 'dotenv';
import { beginProcess, exitOnBadSettings } from '../../shared/process-lifecycle.ts';
import type { CommandContext } from './command-context.ts';

/** Commands that act on this machine's installation, found by its settings. */
export function addServiceCommands(program: Command): void {
  program.commandsGroup('The service:');
  program
    .command('up')
    .description('start everything, in the foreground (the default)')
    .action(withService(async () => (await import('./up.ts')).up));
  program
    .command('migrate')
    .description('migrate the database at DATABASE_URL and create the first administrator')
    .action(withService(async () => (await import('./migrate.ts')).migrate));
  program
    .command('backup')
    .description('copy the database and all objects into a new folder, while the service runs')
    .argument('<folder>')
    .action(withService(async () => (await import('./backup.ts')).backUp));
  program
    .command('restore')
    .description('restore such a folder into an empty installation, whose service does not run')
    .argument('<folder>')
    .action(withService(async () => (await import('./restore.ts')).restore));
  const audit = program.command('audit').description('the audit');
  audit
    .command('verify')
    .description('check that no entry of the audit was edited, removed or reordered')
    .action(withService(async () => (await import('./verify-audit.ts')).verifyAuditChain));
  const keys = program.command('keys').description('the keys that seal what is secret');
  keys
    .command('new')
    .description('print new values for SECRET_KEY, SEAL_PUBLIC_KEY and SEAL_PRIVATE_KEYS')
    .action(withService(async () => (await import('./keys.ts')).printNewKeys));
  keys
    .command('rotate')
    .description('seal the credentials of open sessions with a new key, while the service runs')
    .action(withService(async () => (await import('./rotate-keys.ts')).rotateKeys));
}

/** Runs the command with the settings of the environment and of `.env`, until it ends or is asked to stop. */
function withService<Given extends string[]>(
  load: () => Promise<(context: CommandContext, ...given: Given) => Promise<void>>,
) {
  return async (...given: Given) => {
    readDotEnv({ quiet: true });
    const life = beginProcess('windlass');
    try {
      const run = await load();
      await run({ life, environment: process.env }, ...given);
    } catch (error) {
      // A stop during the start is no error.
      if (life.stopping.aborted) process.exit(0);
      exitOnBadSettings(error);
      throw error;
    }
  };
}

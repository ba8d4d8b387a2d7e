import type { Command } from 'commander';
import { beginProcess, exitOnBadSettings, exitWith } from '../../shared/service/lifecycle.ts';
import { findMisspelt } from '../../shared/settings/misspelt.ts';
import { json, wholeNumber, withExample } from '../options.ts';
import type { CommandContext } from './command-context.ts';
import { readDotEnv } from './read-dot-env.ts';

/** Commands that act on this machine's installation, found by its settings. */
export function addServiceCommands(program: Command): void {
  program.commandsGroup('The service:');
  withExample(
    program
      .command('up')
      .description('start everything, in the foreground (the default)')
      .action(withService(async () => (await import('./up.ts')).up, { logs: true })),
    'DATA_DIR=/srv/windlass/data windlass up',
  );
  withExample(
    program
      .command('migrate')
      .description('migrate the database at DATABASE_URL and create the first administrator')
      .addOption(json())
      .action(withService(async () => (await import('./migrate.ts')).migrate)),
    'DATABASE_URL=postgres://windlass:…@db/windlass windlass migrate',
  );
  withExample(
    program
      .command('backup')
      .description('copy the database and all objects into a new folder, while the service runs')
      .argument('<folder>')
      .option(
        '--since <folder>',
        'an older backup, on the same disk: links its objects, which never change',
      )
      .option(
        '--without-missing',
        'objects that the store has lost are listed, and it ends with status 3',
      )
      .addOption(json())
      .action(withService(async () => (await import('./backup.ts')).backUp)),
    'windlass backup /backups/tuesday --since /backups/monday',
  );
  withExample(
    program
      .command('restore')
      .description('restore such a folder into an empty installation, whose service does not run')
      .argument('<folder>')
      .addOption(json())
      .action(withService(async () => (await import('./restore.ts')).restore)),
    'DATA_DIR=/srv/windlass/new windlass restore /backups/monday',
  );
  addRetention(program.command('retention').description('what is removed after a time'));
  const admin = program.command('admin').description('the administrators of the service');
  withExample(
    admin
      .command('reset')
      .description('give an administrator a new password, and end all that let in before')
      .argument('[name]', 'the user, who is added if there is none; ADMIN_USERNAME by default')
      .option('--password-stdin', 'read the new password from standard input')
      .addOption(json())
      .action(
        withService(async () => (await import('./reset-administrator.ts')).resetAdministrator),
      ),
    'windlass admin reset',
  );
  const audit = program.command('audit').description('the audit');
  withExample(
    audit
      .command('verify')
      .description('check that no entry of the audit was edited, removed or reordered')
      .addOption(json())
      .action(withService(async () => (await import('./verify-audit.ts')).verifyAuditChain)),
    'windlass audit verify',
  );
  const keys = program.command('keys').description('the keys that seal what is secret');
  withExample(
    keys
      .command('new')
      .description('print new values for SECRET_KEY, SEAL_PUBLIC_KEY and SEAL_PRIVATE_KEYS')
      .addOption(json())
      .action(withService(async () => (await import('./keys.ts')).printNewKeys)),
    'windlass keys new',
  );
  withExample(
    keys
      .command('rotate')
      .description('seal the credentials of open sessions with a new key, while the service runs')
      .addOption(json())
      .action(withService(async () => (await import('./rotate-keys.ts')).rotateKeys)),
    'windlass keys rotate',
  );
}

function addRetention(retention: Command): void {
  const load = () => import('./retention.ts');
  withExample(
    retention
      .command('show')
      .description('say how long what is kept, and how much of it is due')
      .addOption(json())
      .action(withService(async () => (await load()).showRetention)),
    'windlass retention show',
  );
  withExample(
    retention
      .command('remove')
      .description('remove at once what is due, while the service runs')
      .option('--days <number>', 'jobs and sessions that ended so many days ago', wholeNumber)
      .addOption(json())
      .action(withService(async () => (await load()).removeDue)),
    'windlass retention remove --days 7',
  );
}

/**
 * Runs the command with the settings of the environment and of `.env`, until it ends or is asked to stop. Tells of
 * misspelt ones, unless the command has a log to do that (`logs`).
 */
function withService<Given extends unknown[]>(
  load: () => Promise<(context: CommandContext, ...given: Given) => Promise<void>>,
  { logs = false } = {},
) {
  return async (...given: Given) => {
    const life = beginProcess('windlass');
    try {
      const misspelt = findMisspelt(process.env, readDotEnv(process.env));
      if (!logs) process.stderr.write(misspelt.map(line => `windlass: ${line}\n`).join(''));
      const run = await load();
      await run({ life, environment: process.env, misspelt }, ...given);
    } catch (error) {
      // A script that goes on after a success must not take this for one.
      if (life.stopping.aborted) exitWith('Stopped before it was done.');
      exitOnBadSettings(error);
      throw error;
    }
  };
}

import { config as readDotEnv } from 'dotenv';
import { beginProcess, exitOnBadSettings, exitWith } from '../shared/process-lifecycle.ts';
import type { CommandContext } from './commands/command-context.ts';
import { printNewKeys } from './commands/keys.ts';
import { migrate } from './commands/migrate.ts';
import { rotateKeys } from './commands/rotate-keys.ts';
import { up } from './commands/up.ts';
import { verifyAuditChain } from './commands/verify-audit.ts';
import { StartError } from './start-error.ts';

interface Command {
  run(context: CommandContext): Promise<void>;
  description: string;
}

/** By their arguments. A parser of arguments would be larger than these commands without options. */
const COMMANDS: Record<string, Command> = {
  up: { run: up, description: 'start everything, in the foreground' },
  migrate: {
    run: migrate,
    description: 'migrate the database at DATABASE_URL and create the first administrator',
  },
  'audit verify': {
    run: verifyAuditChain,
    description: 'check that no entry of the audit was edited, removed or reordered',
  },
  'keys new': {
    run: printNewKeys,
    description: 'print new values for SECRET_KEY, SEAL_PUBLIC_KEY and SEAL_PRIVATE_KEYS',
  },
  'keys rotate': {
    run: rotateKeys,
    description: 'seal the credentials of open sessions with a new key, while the service runs',
  },
};

const name = process.argv.slice(2).join(' ') || 'up';
const command = COMMANDS[name];
if (!command) {
  const usage = Object.entries(COMMANDS).map(
    ([known, { description }]) => `  windlass ${known.padEnd(12)} ${description}`,
  );
  exitWith([`windlass: there is no command "${name}". There is:`, ...usage].join('\n'));
}
readDotEnv({ quiet: true });
const life = beginProcess('windlass');
try {
  await command.run({ life, environment: process.env });
} catch (error) {
  // A stop during the start is no error.
  if (life.stopping.aborted) process.exit(0);
  exitOnBadSettings(error);
  if (error instanceof StartError)
    exitWith(`windlass: ${[error.message, error.hint].filter(Boolean).join(' ')}`);
  throw error;
}

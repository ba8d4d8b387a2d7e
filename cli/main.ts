import { config as readDotEnv } from 'dotenv';
import { beginProcess, exitOnBadSettings, exitWith } from '../shared/process-lifecycle.ts';
import type { CommandContext } from './commands/command-context.ts';
import { printNewKeys } from './commands/keys.ts';
import { migrate } from './commands/migrate.ts';
import { up } from './commands/up.ts';
import { StartError } from './start-error.ts';

const COMMANDS: Record<string, { run: (call: CommandContext) => Promise<void>; meaning: string }> =
  {
    up: { run: up, meaning: 'start everything, in the foreground' },
    migrate: {
      run: migrate,
      meaning: 'bring the database at DATABASE_URL up to date and make the administrator',
    },
    'keys new': {
      run: printNewKeys,
      meaning: 'print new values for SECRET_KEY, SEAL_PUBLIC_KEY and SEAL_PRIVATE_KEYS',
    },
  };

const given = process.argv.slice(2).join(' ') || 'up';
const command = COMMANDS[given];
if (!command) {
  const known = Object.entries(COMMANDS).map(
    ([name, { meaning }]) => `  windlass ${name.padEnd(10)} ${meaning}`,
  );
  exitWith([`windlass: there is no command "${given}". There is:`, ...known].join('\n'));
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

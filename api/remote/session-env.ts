import { z } from 'zod';
import { launchOptions } from '../../shared/jobs/payloads/launch.ts';
import { type SealContext, seal } from '../../shared/secrets/secrets.ts';
import { STARTUP_FILE_MODES, type Startup } from '../../shared/ssh/startup-files.ts';
import { invalidInput } from '../http/validate.ts';

/** How a session's commands are run. */
export const sessionOptions = {
  env: launchOptions.env.describe(
    "Variables of all its commands, and of its batch jobs; a command's own come first.",
  ),
  startup: z
    .enum(STARTUP_FILE_MODES)
    .optional()
    .describe(
      "When the account's start-up files are read: `once` a connection, the default with an agent, or by `each` command, as over plain ssh and always without an agent.",
    ),
};

interface Given {
  env?: Record<string, string>;
  startup?: Startup;
}

/** Names that a session's record shows, at most; and how long they are together. */
const MAX_NAMES = 100;
const MAX_NAME_LENGTH = 4_096;

/** The columns of a new session for its variables. A record shows the names of the variables alone. */
export async function sealEnv(publicKey: string, context: SealContext, { env }: Given) {
  const names = Object.keys(env ?? {});
  if (names.length === 0) return undefined;
  let length = 0;
  const envNames = names.slice(0, MAX_NAMES).filter(name => {
    length += name.length;
    return length <= MAX_NAME_LENGTH;
  });
  // Nothing is sent anywhere with them but over the session's connection.
  const given = { destination: '', secret: env };
  return { sealedEnv: await seal(publicKey, { ...context, of: 'env' }, given), envNames };
}

/** Without an agent nothing could keep what the start-up files exported. */
export function startupOf({ startup = 'once' }: Given, hasAgent: boolean): Startup {
  return hasAgent ? startup : 'once';
}

export function checkStartup({ startup }: Given, hasAgent: boolean): void {
  if (hasAgent || startup !== 'once') return;
  throw invalidInput(
    [{ field: 'startup', problem: 'is "each" without an agent' }],
    'Leave "startup" out, or open the session with an agent.',
  );
}

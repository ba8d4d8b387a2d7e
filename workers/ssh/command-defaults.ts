import type { Startup } from '../../shared/ssh/startup-files.ts';

/** How the commands of a session are run. */
export interface CommandDefaults {
  startup: Startup;
  /** Variables of all of them. */
  env: Record<string, string>;
}

/** What a request has of its own comes first. */
export function withSessionEnv<T extends { env?: Record<string, string> }>(
  request: T,
  { env }: CommandDefaults,
): T {
  return { ...request, env: { ...env, ...request.env } };
}

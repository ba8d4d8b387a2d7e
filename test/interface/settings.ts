import { readFileSync } from 'node:fs';

/** A service that runs already, to hold against the interface. */
export interface Target {
  /** No slash at the end. */
  url: string;
  username: string;
  password: string;
  host?: TargetHost;
}

/** A login on a host that the service knows, set up for an agent. */
export interface TargetHost {
  hostname: string;
  username: string;
  password?: string;
  privateKey?: string;
}

/**
 * WINDLASS_URL, WINDLASS_USERNAME and WINDLASS_PASSWORD; for what needs a host WINDLASS_HOST (its name there),
 * WINDLASS_HOST_USERNAME, and WINDLASS_HOST_PASSWORD or WINDLASS_HOST_KEY_FILE. Undefined where no service is named.
 */
export function readTarget(env: NodeJS.ProcessEnv = process.env): Target | undefined {
  const { WINDLASS_URL, WINDLASS_USERNAME, WINDLASS_PASSWORD } = env;
  if (!WINDLASS_URL) return undefined;
  if (!WINDLASS_USERNAME || !WINDLASS_PASSWORD)
    throw new Error('WINDLASS_URL needs WINDLASS_USERNAME and WINDLASS_PASSWORD beside it.');
  return {
    url: WINDLASS_URL.replace(/\/$/, ''),
    username: WINDLASS_USERNAME,
    password: WINDLASS_PASSWORD,
    host: readHost(env),
  };
}

function readHost(env: NodeJS.ProcessEnv): TargetHost | undefined {
  const { WINDLASS_HOST, WINDLASS_HOST_USERNAME, WINDLASS_HOST_PASSWORD, WINDLASS_HOST_KEY_FILE } =
    env;
  if (!WINDLASS_HOST) return undefined;
  if (!WINDLASS_HOST_USERNAME || !(WINDLASS_HOST_PASSWORD || WINDLASS_HOST_KEY_FILE))
    throw new Error(
      'WINDLASS_HOST needs WINDLASS_HOST_USERNAME, and WINDLASS_HOST_PASSWORD or WINDLASS_HOST_KEY_FILE.',
    );
  return {
    hostname: WINDLASS_HOST,
    username: WINDLASS_HOST_USERNAME,
    ...(WINDLASS_HOST_KEY_FILE
      ? { privateKey: readFileSync(WINDLASS_HOST_KEY_FILE, 'utf8') }
      : { password: WINDLASS_HOST_PASSWORD }),
  };
}

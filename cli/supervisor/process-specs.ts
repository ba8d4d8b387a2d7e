import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/package-root.ts';
import { StartError } from '../start-error.ts';
import { readProcfile } from './procfile.ts';
import type { ProcessSpec } from './supervised-process.ts';

type Environment = Record<string, string | undefined>;

/**
 * The number of workers in the embedded form, and of processes for each line of a Procfile: one can die without an
 * outage.
 */
const EACH = 2;
/** The name of the processes that listen on a port. */
const API = 'api';

/** The embedded form: an API and two workers of every kind. */
export function listEmbeddedProcesses(env: Environment): ProcessSpec[][] {
  const program = (path: string) => [
    process.execPath,
    fileURLToPath(new URL(`../../${path}`, import.meta.url)),
  ];
  return [
    [{ name: API, command: program('api/main.js'), env: withoutSecrets(env, API) }],
    Array.from({ length: EACH }, (_unused, n) => ({
      name: `worker.${n + 1}`,
      command: program('workers/main.js'),
      env: withoutSecrets(env, 'worker'),
    })),
  ];
}

/**
 * The processes of one machine of a fleet, without their environments: two for each line of the Procfile at `path`,
 * or of the package's own. Their working directory is the package's folder. Throws StartError.
 */
export function readFleetProcesses(path: string | undefined): ProcessSpec[][] {
  const text = readFleetProcfile(path);
  return readProcfile({ text, each: EACH, cwd: fileURLToPath(packageRoot) });
}

function readFleetProcfile(path: string | undefined): string {
  try {
    return readFileSync(path ?? new URL('Procfile', packageRoot), 'utf8');
  } catch (error) {
    throw new StartError(`PROCFILE: ${path} cannot be read: ${(error as Error).message}.`);
  }
}

/** The ports of the API processes: `port` and the following ones. None if the Procfile has no `api`. */
export function listApiPorts([listening = []]: ProcessSpec[][], port: number): number[] {
  return listening.map((_unused, n) => port + n);
}

/** Adds the environments: the secrets that each process needs, and a port for each API process. */
export function listFleetProcesses(
  groups: ProcessSpec[][],
  env: Environment,
  port: number,
): ProcessSpec[][] {
  const ports = listApiPorts(groups, port);
  return groups.map(group =>
    group.map((spec, n) => {
      const [kind = ''] = spec.name.split('.');
      const own = withoutSecrets(env, kind);
      return { ...spec, env: kind === API ? { ...own, PORT: String(ports[n]) } : own };
    }),
  );
}

/** True if these processes do not need the secret. Only the supervisor needs the first administrator's password. */
function isWithheld(kind: string, name: string): boolean {
  if (name === 'ADMIN_PASSWORD') return true;
  if (name === 'SECRET_KEY' || name === 'OIDC_CLIENT_SECRET') return kind !== API;
  return name === 'SEAL_PRIVATE_KEYS' && [API, 'parse', 'upkeep'].includes(kind);
}

function withoutSecrets(env: Environment, kind: string): Environment {
  const kept = Object.entries(env).filter(([name]) => !isWithheld(kind, name));
  return Object.fromEntries(kept);
}

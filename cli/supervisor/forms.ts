import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/package-root.ts';
import { StartError } from '../start-error.ts';
import { readProcfile } from './procfile.ts';
import type { ProcessSpec } from './supervised-process.ts';

type Environment = Record<string, string | undefined>;

/** Workers of the embedded form, and processes of each line of the fleet's: one may die and the others go on. */
const EACH = 2;
/** The line whose processes listen. */
const API = 'api';

/** The API and two workers that take every kind of work. */
export function listEmbedded(env: Environment): ProcessSpec[][] {
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
 * What a machine of a fleet runs: two of each line of the Procfile at `path`, or of the package's own, which work in the
 * package's folder. They have no environment yet. Throws StartError.
 */
export function readFleet(path: string | undefined): ProcessSpec[][] {
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

/** The ports of the fleet's API processes: the first is PORT, the others follow. None where the Procfile has no `api`. */
export function listFleetPorts([listening = []]: ProcessSpec[][], port: number): number[] {
  return listening.map((_unused, n) => port + n);
}

/** The fleet's processes with their environments: each has its part of the secrets, each API process a port of its own. */
export function listFleet(
  groups: ProcessSpec[][],
  env: Environment,
  port: number,
): ProcessSpec[][] {
  const ports = listFleetPorts(groups, port);
  return groups.map(group =>
    group.map((spec, n) => {
      const [kind = ''] = spec.name.split('.');
      const own = withoutSecrets(env, kind);
      return { ...spec, env: kind === API ? { ...own, PORT: String(ports[n]) } : own };
    }),
  );
}

/** Which processes need no part in a secret; the first administrator's password is the supervisor's alone. */
function isKeptFrom(kind: string, name: string): boolean {
  if (name === 'ADMIN_PASSWORD') return true;
  if (name === 'SECRET_KEY') return kind !== API;
  return name === 'SEAL_PRIVATE_KEYS' && [API, 'parse', 'upkeep'].includes(kind);
}

function withoutSecrets(env: Environment, kind: string): Environment {
  const kept = Object.entries(env).filter(([name]) => !isKeptFrom(kind, name));
  return Object.fromEntries(kept);
}

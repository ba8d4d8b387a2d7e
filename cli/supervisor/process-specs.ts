import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/process/package-root.ts';
import { type Environment, partSecrets } from '../../shared/secrets/handed-secrets.ts';
import { CommandError } from '../command-error.ts';
import { readProcfile } from './procfile.ts';
import type { ProcessSpec } from './supervised-process.ts';

/** The number of processes for each line of a Procfile: one can die without an outage. */
const EACH = 2;
/** The name of the processes that listen on a port. */
const API = 'api';

interface EmbeddedOptions {
  /** The number of workers. */
  workers: number;
  /** DATABASE_URL of each, where they have roles of their own. */
  urls?: { api: string; worker: string };
  /** Whom they run as, if not as this process's user. */
  users?: { api?: ProcessSpec['user']; worker?: ProcessSpec['namespace'] };
}

/** The embedded form: an API, and workers of every kind. */
export function listEmbeddedProcesses(
  env: Environment,
  { workers, urls, users }: EmbeddedOptions,
): ProcessSpec[][] {
  const withUrl = (url: string | undefined) => (url ? { ...env, DATABASE_URL: url } : env);
  const program = (path: string) => [
    process.execPath,
    fileURLToPath(new URL(`../../${path}`, import.meta.url)),
  ];
  return [
    [
      {
        name: API,
        command: program('api/main.js'),
        user: users?.api,
        ...settingsFor(API, withUrl(urls?.api)),
      },
    ],
    Array.from({ length: workers }, (_unused, n) => ({
      name: `worker.${n + 1}`,
      command: program('workers/main.js'),
      namespace: users?.worker,
      ...settingsFor('worker', withUrl(urls?.worker)),
    })),
  ];
}

/**
 * The processes of one machine of a fleet, without their environments: two for each line of the Procfile at `path`,
 * or of the package's own. Their working directory is the package's folder. Throws CommandError.
 */
export function readFleetProcesses(path: string | undefined): ProcessSpec[][] {
  const text = readFleetProcfile(path);
  return readProcfile({ text, each: EACH, cwd: fileURLToPath(packageRoot) });
}

function readFleetProcfile(path: string | undefined): string {
  try {
    return readFileSync(path ?? new URL('Procfile', packageRoot), 'utf8');
  } catch (error) {
    throw new CommandError(`PROCFILE: ${path} cannot be read: ${(error as Error).message}.`);
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
      const { env: own, secrets } = settingsFor(kind, env);
      return { ...spec, env: kind === API ? { ...own, PORT: String(ports[n]) } : own, secrets };
    }),
  );
}

/** Secrets that APIs alone need. */
const OF_API = ['SECRET_KEY', 'SECRET_KEY_BEFORE', 'OIDC_CLIENT_SECRET'];

/** True if these processes do not need the secret. Only the supervisor needs the first administrator's password. */
function isWithheld(kind: string, name: string): boolean {
  if (name === 'ADMIN_PASSWORD') return true;
  if (OF_API.includes(name)) return kind !== API;
  return name === 'SEAL_PRIVATE_KEYS' && [API, 'parse', 'upkeep'].includes(kind);
}

/** What a process of this kind needs, the secrets apart from what may be seen. */
function settingsFor(kind: string, env: Environment): Pick<ProcessSpec, 'env' | 'secrets'> {
  const kept = Object.entries(env).filter(([name]) => !isWithheld(kind, name));
  const { open, secrets } = partSecrets(Object.fromEntries(kept));
  return { env: open, secrets };
}

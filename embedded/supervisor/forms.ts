import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/package-root.ts';
import { readProcfile } from './procfile.ts';
import type { ProcessSpec } from './supervised-process.ts';

type Environment = Record<string, string | undefined>;

/** Workers of the embedded form, and processes of each line of the fleet's: one may die and the others go on. */
const EACH = 2;

/** The API and two workers that take every kind of work. */
export function listEmbedded(env: Environment): ProcessSpec[][] {
  const program = (path: string) => [
    process.execPath,
    fileURLToPath(new URL(`../../${path}`, import.meta.url)),
  ];
  return [
    [{ name: 'api', command: program('api/main.js'), env: withoutSecrets(env, 'api') }],
    Array.from({ length: EACH }, (_unused, n) => ({
      name: `worker.${n + 1}`,
      command: program('workers/main.js'),
      env: withoutSecrets(env, 'worker'),
    })),
  ];
}

/** The ports of the fleet's API processes: the first is PORT, the others follow. */
export function listFleetPorts(port: number): number[] {
  return Array.from({ length: EACH }, (_unused, n) => port + n);
}

/** Two of each line of the package's Procfile; each API process has a port of its own. */
export function listFleet(env: Environment, port: number): ProcessSpec[][] {
  const text = readFileSync(new URL('Procfile', packageRoot), 'utf8');
  const counts = Object.fromEntries(readNames(text).map(name => [name, EACH]));
  const ports = listFleetPorts(port);
  const groups = readProcfile({ text, counts, cwd: fileURLToPath(packageRoot) });
  return groups.map(group =>
    group.map(spec => {
      const [kind = '', n = '1'] = spec.name.split('.');
      const own = withoutSecrets(env, kind);
      return {
        ...spec,
        env: kind === 'api' ? { ...own, PORT: String(ports[Number(n) - 1]) } : own,
      };
    }),
  );
}

function readNames(procfile: string): string[] {
  const [first = [], then = []] = readProcfile({ text: procfile });
  return [...first, ...then].map(({ name }) => name);
}

/** Which processes need a secret; the first administrator's password is the supervisor's alone. */
const HOLDERS: Record<string, string[]> = {
  ADMIN_PASSWORD: [],
  SECRET_KEY: ['api'],
  SEAL_PRIVATE_KEYS: ['worker', 'remote', 'video'],
};

function withoutSecrets(env: Environment, kind: string): Environment {
  const kept = Object.entries(env).filter(([name]) => HOLDERS[name]?.includes(kind) ?? true);
  return Object.fromEntries(kept);
}

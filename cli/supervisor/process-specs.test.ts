import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { listFleetProcesses, readFleetProcesses } from './process-specs.ts';
import type { ProcessSpec } from './supervised-process.ts';

const directory = makeTempDir('forms');
afterAll(() => directory.remove());

const SECRETS = {
  ADMIN_PASSWORD: 'the-password',
  SECRET_KEY: 'the-secret',
  OIDC_CLIENT_SECRET: 'the-client-secret',
  SEAL_PRIVATE_KEYS: 'the-private-keys',
};
const ENV = { ...SECRETS, SEAL_PUBLIC_KEY: 'the-public-key' };

/**
 * The secrets that each process of a Procfile with these lines is handed, none of them in its environment or its arguments, and
 * its port.
 */
function givenTo(lines: string[]): Record<string, string[]> {
  const path = join(directory.path, 'Procfile');
  writeFileSync(path, lines.map(line => `${line}: node it\n`).join(''));
  const specs = listFleetProcesses(readFleetProcesses(path), ENV, 8080).flat();
  const given = ({ command, env, secrets }: ProcessSpec) => {
    for (const name of Object.keys(ENV)) expect(env).not.toHaveProperty(name);
    for (const value of Object.values(SECRETS))
      expect(JSON.stringify([command, env])).not.toContain(value);
    const { SEAL_PUBLIC_KEY, ...others } = secrets ?? {};
    expect(SEAL_PUBLIC_KEY).toBe(ENV.SEAL_PUBLIC_KEY);
    return [...Object.keys(others), ...(env?.PORT ? [env.PORT] : [])];
  };
  return Object.fromEntries(specs.map(spec => [spec.name, given(spec)]));
}

test('each API has its secrets and a port of its own; each other process the seal keys at most', () => {
  expect(givenTo(['remote', 'api', 'video'])).toEqual({
    'api.1': ['SECRET_KEY', 'OIDC_CLIENT_SECRET', '8080'],
    'api.2': ['SECRET_KEY', 'OIDC_CLIENT_SECRET', '8081'],
    'remote.1': ['SEAL_PRIVATE_KEYS'],
    'remote.2': ['SEAL_PRIVATE_KEYS'],
    'video.1': ['SEAL_PRIVATE_KEYS'],
    'video.2': ['SEAL_PRIVATE_KEYS'],
  });
  expect(givenTo(['parse'])).toEqual({ 'parse.1': [], 'parse.2': [] });
  expect(givenTo(['upkeep'])).toEqual({ 'upkeep.1': [], 'upkeep.2': [] });
});

test('a line of any other name has no secret of an API', () => {
  for (const name of ['worker', 'jobs', 'apis'])
    expect(givenTo([name])).toEqual({
      [`${name}.1`]: ['SEAL_PRIVATE_KEYS'],
      [`${name}.2`]: ['SEAL_PRIVATE_KEYS'],
    });
});

import { execFile, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { findFreePort } from '../../servers/free-port.ts';
import { awaitExit, endChild, endWithThisProcess } from '../../servers/processes.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { SETTINGS } from '../../shared/settings/settings.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeUnless, missingPrograms, skipTest } from '../harness/skip.ts';
import { type ComposeService, readCompose } from '../harness/stacks/compose.ts';
import { type BuiltImage, buildImage } from '../harness/stacks/dockerfile.ts';
import {
  type FleetLease,
  holdFleetServers,
  makeFleetSettings,
  missingFleet,
} from '../harness/stacks/fleet-servers.ts';
import { waitFor } from '../harness/wait-for.ts';

const NOBODY = 65_534;
const WORKERS = ['remote', 'video', 'parse', 'upkeep'];
/** What .env holds. */
const VARIABLES = {
  POSTGRES_PASSWORD: 'postgres-password',
  OWNER_PASSWORD: 'owner-password',
  API_PASSWORD: 'api-password',
  WORKER_PASSWORD: 'worker-password',
  REDIS_PASSWORD: 'redis-password',
  S3_ROOT_PASSWORD: 's3-root-password',
  S3_SECRET_KEY: 's3-secret-key',
  ADMIN_PASSWORD: 'admin-password',
  SECRET_KEY: 'secret-key-of-at-least-32-characters',
  SEAL_PUBLIC_KEY: 'seal-public-key',
  SEAL_PRIVATE_KEYS: 'seal-private-keys',
};
/** The servers of docker-compose.yml, which it names itself. */
const FIXED = ['DATABASE_URL', 'REDIS_URL', 'S3_ENDPOINT', 'S3_BUCKET', 'S3_ACCESS_KEY'];

describeUnless(missingPrograms('docker-compose'), 'docker-compose.yml', () => {
  test('is valid, runs every line of the Procfile, and pins what it pulls', () => {
    const services = readCompose(VARIABLES);
    expect(Object.keys(services).sort()).toEqual(
      ['api', 'migrate', ...WORKERS, 'postgres', 'redis', 'minio', 'store-user'].sort(),
    );
    const procfile = readFileSync(new URL('../../Procfile', import.meta.url), 'utf8');
    for (const line of procfile.trim().split('\n')) {
      if (line.startsWith('#')) continue;
      const [name = '', command] = line.split(/: /);
      expect([name, services[name]?.command.join(' ')]).toEqual([name, command]);
    }
    for (const { image } of Object.values(services))
      expect(image).toMatch(
        /^windlass$|^[\w./-]+:(\d+(\.\d+)+-\w+|RELEASE\.[\w-]+)(@sha256:[0-9a-f]{64})?$/,
      );
  });

  test('each secret reaches those alone who need it', () => {
    const services = readCompose(VARIABLES);
    const holders = (secret: keyof typeof VARIABLES) =>
      Object.keys(services)
        .filter(name => JSON.stringify(services[name]?.environment).includes(VARIABLES[secret]))
        .sort();
    const all = ['api', ...WORKERS];
    expect(holders('SECRET_KEY')).toEqual(['api']);
    expect(holders('SEAL_PUBLIC_KEY')).toEqual(['api']);
    expect(holders('SEAL_PRIVATE_KEYS')).toEqual(['remote', 'video']);
    expect(holders('ADMIN_PASSWORD')).toEqual(['migrate']);
    // No program of Windlass is the superuser of a server.
    expect(holders('POSTGRES_PASSWORD')).toEqual(['postgres']);
    expect(holders('S3_ROOT_PASSWORD')).toEqual(['minio', 'store-user']);
    expect(holders('OWNER_PASSWORD')).toEqual(['migrate', 'postgres']);
    expect(holders('API_PASSWORD')).toEqual(['api', 'postgres']);
    expect(holders('WORKER_PASSWORD')).toEqual([...WORKERS, 'postgres'].sort());
    expect(holders('REDIS_PASSWORD')).toEqual([...all, 'redis'].sort());
    // As a line of its configuration, as arguments can be read by other processes.
    expect(services.redis?.command.join(' ')).toMatch(
      /echo "requirepass \$\$REDISCLI_AUTH" \| exec redis-server /,
    );
    expect(services.redis?.environment).toEqual({ REDISCLI_AUTH: VARIABLES.REDIS_PASSWORD });
    expect(holders('S3_SECRET_KEY')).toEqual([...all, 'store-user'].sort());
    const outside = Object.keys(services).filter(name =>
      services[name]?.networks.includes('outside'),
    );
    expect(outside.sort()).toEqual(['api', 'remote', 'video']);
  });

  test('the settings that the guide has in .env reach the API or `migrate`', () => {
    const given = Object.fromEntries(listSettingsOfEnv().map(name => [name, `of-${name}`]));
    expect(given).toMatchObject({ PUBLIC_URL: 'of-PUBLIC_URL', OIDC_USERS: 'of-OIDC_USERS' });
    const { api, migrate } = readCompose({ ...VARIABLES, ...given });
    expect({ ...migrate?.environment, ...api?.environment }).toMatchObject(given);
  });

  test('any other setting reaches every process from a file', () => {
    const directory = makeTempDir('settings');
    try {
      const path = join(directory.path, 'settings.env');
      const names = Object.keys(SETTINGS);
      writeFileSync(path, names.map(name => `${name}=of the file\n`).join(''));
      const services = readCompose({ ...VARIABLES, SETTINGS_FILE: path });
      const ofEnv = new Set([...Object.keys(VARIABLES), ...FIXED, ...listSettingsOfEnv()]);
      for (const service of ['api', 'migrate', ...WORKERS]) {
        const { environment } = services[service] ?? {};
        const ignored = names.filter(name => environment?.[name] !== 'of the file');
        expect([service, ignored.filter(name => !ofEnv.has(name))]).toEqual([service, []]);
      }
      // What .env holds comes first.
      expect(services.api?.environment.SECRET_KEY).toBe(VARIABLES.SECRET_KEY);
      expect(services.redis?.environment).toEqual({ REDISCLI_AUTH: VARIABLES.REDIS_PASSWORD });
    } finally {
      directory.remove();
    }
  });

  test.each(Object.keys(VARIABLES))('without %s it names the guide and starts nothing', name => {
    const { [name as keyof typeof VARIABLES]: _, ...others } = VARIABLES;
    expect(() => readCompose(others)).toThrow('docs/fleet.md');
  });
});

describeUnless(
  missingPrograms('docker-compose', 'openssl'),
  'the .env that the guide makes',
  () => {
    test('is all that docker-compose.yml asks for, and only its owner can read it', async () => {
      const directory = makeTempDir('env');
      try {
        const guide = readFileSync(new URL('../../docs/fleet.md', import.meta.url), 'utf8');
        const [, script = ''] = /```sh\n(umask 077\n[\s\S]+?\.env\n)/.exec(guide) ?? [];
        const windlass = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
        const here = script.replace('npm run --silent windlass', `node '${windlass}'`);
        await run('/bin/sh', ['-euc', `cd '${directory.path}'\n${here}`]);
        const envFile = join(directory.path, '.env');
        expect(statSync(envFile).mode & 0o777).toBe(0o600);
        const { remote, api, migrate } = readCompose({ envFile });
        const told = { ...remote?.environment, ...api?.environment, ...migrate?.environment };
        const config = readConfig(told);
        for (const name of Object.keys(VARIABLES).filter(name => name in SETTINGS))
          expect([name, config[name as keyof typeof config]]).toEqual([name, expect.any(String)]);
        expect(told.DATABASE_URL).toMatch(/^postgres:\/\/windlass_owner:[0-9a-f]{32}@/);
      } finally {
        directory.remove();
      }
    });
  },
);

const skip = missingPrograms('docker-compose') ?? missingFleet();

describeUnless(skip, 'the image, made without an engine', () => {
  const directory = makeTempDir('image');
  let image: BuiltImage;
  let lease: FleetLease;
  beforeAll(async () => {
    image = await buildImage(directory.path);
    lease = await holdFleetServers();
  }, 600_000);
  afterAll(async () => {
    await lease?.release();
    directory.remove();
  }, 300_000);

  test('leaves out only what Debian installs', () => {
    expect(image.leftOut).toEqual([expect.stringMatching(/install .*\bffmpeg\b.*\btini\b/)]);
  });

  test('has all that its programs import, and no more of the checkout', () => {
    const { dependencies } = JSON.parse(
      readFileSync(join(image.directory, 'package.json'), 'utf8'),
    );
    expect(readdirSync(image.directory).sort()).toEqual(
      ['Procfile', 'dist', 'migrations', 'node_modules', 'package.json'].sort(),
    );
    const dist = join(image.directory, 'dist');
    const files = readdirSync(dist, { recursive: true, encoding: 'utf8' });
    // What is started or imported by its path: main programs, children, threads.
    const programs = files.filter(name =>
      /(^|\/)(main|child|[^/]*-(child|thread))\.js$/.test(name),
    );
    expect(programs).toEqual(
      expect.arrayContaining(['api/main.js', 'workers/video/decode-child.js']),
    );
    const seen = new Set(programs);
    for (const file of seen) {
      for (const name of listImports(readFileSync(join(dist, file), 'utf8'))) {
        if (name.startsWith('.')) {
          const path = join(dirname(file), name);
          expect([file, name, existsSync(join(dist, path))]).toEqual([file, name, true]);
          seen.add(path);
          continue;
        }
        if (builtinModules.includes(name.replace('node:', ''))) continue;
        const owner = name
          .split('/')
          .slice(0, name.startsWith('@') ? 2 : 1)
          .join('/');
        expect([file, owner, owner in dependencies]).toEqual([file, owner, true]);
      }
    }
    expect(seen.size).toBeGreaterThan(50);
  });

  describe('running as compose runs it', () => {
    let services: Record<string, ComposeService>;
    let ours: Record<string, string>;
    const running: ReturnType<typeof start>[] = [];
    beforeAll(async () => {
      services = readCompose(VARIABLES);
      ours = {
        ...(await makeFleetSettings(lease.servers)),
        HOST: '127.0.0.1',
        PORT: String(await findFreePort()),
      };
    });
    afterAll(() => Promise.all(running.map(({ child }) => endChild(child, 10_000))));

    /** The image's and the service's environment, with the values of this fleet for those names that are given. */
    function chooseEnvironment(service: string): Record<string, string> {
      const given = { ...image.environment, ...services[service]?.environment };
      const entries = Object.entries(given).map(([name, value]) => [name, ours[name] ?? value]);
      return { PATH: process.env.PATH ?? '', ...Object.fromEntries(entries) };
    }

    function start(command: string[], env: Record<string, string>) {
      const [program = '', ...args] = command;
      const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
      const child = spawn(program, args, { cwd: image.directory, env, ...user });
      endWithThisProcess(child);
      let printed = '';
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', text => {
          printed += text;
        });
      return { child, ended: awaitExit(child), printed: () => printed };
    }
    const startService = (name: string) => {
      const command = services[name]?.command ?? image.command;
      return start(command, chooseEnvironment(name));
    };

    test('migrates, and serves with every worker', { timeout: 120_000 }, async () => {
      const migrate = startService('migrate');
      expect([(await migrate.ended).code, migrate.printed()]).toEqual([
        0,
        'The database is up to date.\n',
      ]);
      for (const name of ['api', ...WORKERS]) running.push(startService(name));
      const base = `http://127.0.0.1:${ours.PORT}`;
      await waitFor(
        async () => {
          const ready = await fetch(`${base}/readyz`);
          return ready.ok && ((await ready.json()) as { workers: number }).workers === 4;
        },
        { what: 'the API and four workers', timeoutMs: 60_000 },
      ).catch(error => {
        throw new Error(running.map(({ printed }) => printed()).join('\n'), { cause: error });
      });
      const me = await fetch(`${base}/api/users/-`, {
        headers: { authorization: `Basic ${btoa(`admin:${VARIABLES.ADMIN_PASSWORD}`)}` },
      });
      expect(me.status).toBe(200);
      expect((await fetch(`${base}/console/`)).status).toBe(200);
      expect(existsSync(join(image.directory, 'data'))).toBe(false);
    });

    test('its health check tells an API that serves from one that does not', async () => {
      const check = (port: string) =>
        start(image.healthcheck, { ...chooseEnvironment('api'), PORT: port }).ended;
      expect((await check(ours.PORT ?? '')).code).toBe(0);
      expect((await check(String(await findFreePort()))).code).toBe(1);
    });

    test('SIGTERM ends each of them with 0', { timeout: 60_000 }, async () => {
      for (const { child } of running) child.kill('SIGTERM');
      for (const { ended } of running) expect(await ended).toEqual({ code: 0, signal: null });
    });
  });
});

test('the image is built by an engine', { timeout: 1_800_000 }, async context => {
  const engine = findProgram('docker');
  const isThere = engine && (await run(engine, ['version']).catch(() => undefined));
  if (!isThere) {
    skipTest(context, {
      reason: 'needs a container engine that docker reaches',
      obtainable: false,
    });
  }
  await run(engine, ['build', '--tag', 'windlass-test', '.']);
});

/** Settings that the guide has in .env although they are no keys of `keys new`: docker-compose.yml names them, too. */
function listSettingsOfEnv(): string[] {
  const guide = readFileSync(new URL('../../docs/fleet.md', import.meta.url), 'utf8');
  const [, sentence = ''] = /Into `\.env` go (.+?)\./s.exec(guide) ?? [];
  const told = [...sentence.matchAll(/`([A-Z_]+)(…?)`/g)];
  return Object.keys(SETTINGS).filter(name =>
    told.some(([, begin = '', more]) => (more ? name.startsWith(begin) : name === begin)),
  );
}

/** Rejects with what it printed where it fails. */
async function run(program: string, args: string[]): Promise<unknown> {
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  return promisify(execFile)(program, args, { cwd, maxBuffer: 64 << 20 });
}

function listImports(code: string): string[] {
  const pattern =
    /(?:^|[;\n])\s*(?:import|export)\s[^'"`;]*?from\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|^import\s*['"]([^'"]+)['"]/gm;
  return [...code.matchAll(pattern)].map(match => match[1] ?? match[2] ?? match[3] ?? '');
}

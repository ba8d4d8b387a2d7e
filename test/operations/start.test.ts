import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../servers/free-port.ts';
import { listProcesses } from '../../servers/processes.ts';
import { seal, unseal } from '../../shared/secrets/secrets.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { copyCluster } from '../harness/databases/cluster-template.ts';
import { makeTempDir, type TempDir } from '../harness/files/temp-dir.ts';
import { type ProgramEnd, startProgram } from '../harness/run-program.ts';
import { describeUnless, missingRoot } from '../harness/skip.ts';
import { NOBODY } from '../harness/test-owner.ts';
import { waitFor } from '../harness/wait-for.ts';

const WINDLASS = 'dist/cli/main.js';

let directory: TempDir;
beforeAll(() => {
  directory = makeTempDir('start');
});
afterAll(() => directory.remove());

const run = (args: string[], settings: Record<string, string> = {}) =>
  startProgram({ args, settings, cwd: directory.path }).ended;

/** Expects a refusal in exactly these lines, each of them for people. */
function expectRefusal({ code, stdout, stderr }: ProgramEnd, lines: (string | RegExp)[]): void {
  const said = stderr.trimEnd().split('\n');
  expect(said).toEqual(lines.map(line => expect.stringMatching(line)));
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
}

describe('settings', () => {
  const nonsense = {
    PORT: 'seventeen',
    LOG_LEVEL: 'loud',
    DATABASE_URL: 'mysql://user:hidden-word@127.0.0.1/x',
    ADMIN_PASSWORD: 'shorty',
    ADMIN_USERNAME: '-',
    LIMIT_SESSIONS: '-1',
    SEAL_PUBLIC_KEY: 'not-a-sealing-key',
    TRUST_PROXY: '1.5',
  };
  const programs = [
    [WINDLASS, 'up'],
    [WINDLASS, 'migrate'],
    ['dist/api/main.js'],
    ['dist/workers/main.js'],
  ];

  test('that make no sense are all named at once, one line each, without their values', async () => {
    for (const program of programs) {
      const ended = await run(program, nonsense);
      const names = Object.keys(nonsense).sort();
      expect(ended.stderr.trimEnd().split('\n').sort()).toEqual(
        names.map(name =>
          expect.stringMatching(`^windlass: ${name} \\(.+\\): must|^windlass: ${name} `),
        ),
      );
      expect([program, ended.code]).toEqual([program, 1]);
      expect(ended.stderr).not.toMatch(/hidden-word|shorty|not-a-sealing-key/);
    }
    expect(readdirSync(directory.path)).toEqual([]);
  });

  test('that a program of the fleet needs and lacks are named', async () => {
    expectRefusal(await run(['dist/api/main.js']), [
      /DATABASE_URL is not set/,
      /SECRET_KEY is not set/,
      /SEAL_PUBLIC_KEY is not set/,
    ]);
    expectRefusal(await run(['dist/workers/main.js', 'parse']), [/DATABASE_URL is not set/]);
    const database = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
    for (const kind of ['remote', 'video'])
      expectRefusal(await run(['dist/workers/main.js', 'parse', kind], database), [
        /SEAL_PRIVATE_KEYS is not set/,
      ]);
    expectRefusal(await run([WINDLASS, 'migrate']), [/DATABASE_URL is not set/]);
  });

  describe('in a file .env', () => {
    const cwd = () => join(directory.path, 'with-settings');
    const write = (text: string | Buffer, mode?: number) => {
      mkdirSync(cwd(), { recursive: true });
      writeFileSync(join(cwd(), '.env'), text);
      if (mode !== undefined) chmodSync(join(cwd(), '.env'), mode);
    };
    afterEach(() => rmSync(cwd(), { recursive: true, force: true }));

    test('that are cut by # are named with their lines, without their values', async () => {
      write(`# Not PORT=1#2.
PORT=none # a comment
ADMIN_PASSWORD=Sunshine9#2026
S3_SECRET_KEY="a#b"# a comment
export SECRET_KEY = 'of
two#lines'
SUPPORT_EMAIL=#nobody
`);
      const cut = ['3: ADMIN_PASSWORD', '7: SUPPORT_EMAIL'];
      const { code, stderr } = await startProgram({ args: [WINDLASS, 'up'], cwd: cwd() }).ended;
      expect(stderr.trimEnd().split('\n')).toEqual(
        cut.map(
          what =>
            `windlass: .env, line ${what} has a # in a value without quotes. Put it in quotes.`,
        ),
      );
      expect(code).toBe(1);
    });

    // Without them another installation would start.
    test('that stand in lines of another form are refused, by the numbers of these', async () => {
      write(`\uFEFF# A comment.

DATA_DIR /srv/windlass
  export PORT = 8080
NAME : Sunshine9
HOST: 127.0.0.1
SECRET_KEY="one

two"
-----END KEY-----
SUPPORT_EMAIL:
LOG_LEVEL=
`);
      const { ended } = startProgram({ args: [WINDLASS, 'up'], cwd: cwd() });
      expectRefusal(
        await ended,
        [3, 5, 10, 11].map(
          line =>
            `^windlass: \\.env, line ${line} is neither NAME=value nor a comment\\. Correct or remove it; a value of several lines stands in quotes\\.$`,
        ),
      );
    });

    test.each([
      ['UTF-16 with a byte order mark', Buffer.from('\uFEFFPORT=none\n', 'utf16le')],
      ['UTF-16 without one', Buffer.from('PORT=none\n', 'utf16le')],
      ['Latin-1', Buffer.from('PORT=none\nADMIN_PASSWORD=Schlüssel\n', 'latin1')],
    ])('that are %s are refused', async (_, bytes) => {
      write(bytes);
      const { ended } = startProgram({ args: [WINDLASS, 'up'], cwd: cwd() });
      expectRefusal(await ended, [/^windlass: \.env is not in UTF-8\. Save it in UTF-8\.$/]);
    });

    test('count', async () => {
      write('PORT="no#ne" # a comment\n');
      const { ended } = startProgram({ args: [WINDLASS, 'up'], cwd: cwd() });
      expectRefusal(await ended, [/^windlass: PORT \(/]);
    });

    test('that are misspelt are told by every command, with what is meant', async () => {
      write('JOB_RETENTION_DAY=0\nPORTS=1\nNODE_OPTIONS=\nPORT=none\n');
      const settings = { S3_BUKET: 'x', HOSTS: 'x' };
      const said = async (word: string) => {
        const { ended } = startProgram({ args: [WINDLASS, word], cwd: cwd(), settings });
        return (await ended).stderr.trimEnd().split('\n');
      };
      const lines = [
        'windlass: S3_BUKET is no setting. Is S3_BUCKET meant?',
        'windlass: JOB_RETENTION_DAY is no setting. Is JOB_RETENTION_DAYS meant?',
        'windlass: PORTS is no setting. Is PORT meant?',
      ];
      expect(await said('migrate')).toEqual([
        ...lines.slice(0, 2),
        'windlass: PORTS is no setting: see docs/settings.md.',
        expect.stringMatching(/^windlass: PORT \(/),
      ]);
      write('JOB_RETENTION_DAY=0\nPORTS=1\nAPI_USER=nobody-here\n');
      const up = (await said('up')).filter(line => line.startsWith('{'));
      expect(up.map(line => JSON.parse(line))).toEqual(
        lines.map(line => expect.objectContaining({ level: 40, msg: line.slice(10) })),
      );
    });

    // Another installation would start without them.
    test('that may not be read end every command of the service', async context => {
      if (process.geteuid?.() !== 0) return context.skip('needs root, to be another user');
      write('PORT=none\n', 0o600);
      chmodSync(cwd(), 0o777);
      for (const words of [['up'], ['migrate'], ['backup', 'there'], ['restore', 'there']])
        expectRefusal(
          await startProgram({ args: [WINDLASS, ...words], cwd: cwd(), uid: NOBODY }).ended,
          [/^windlass: \.env cannot be read by nobody: permission denied\.$/],
        );
      expect(readdirSync(cwd())).toEqual(['.env']);
    });
  });
});

test('a command or work that there is not is answered with those there are', async () => {
  const { code, stderr } = await run([WINDLASS, 'keys', 'old']);
  expect(code).toBe(1);
  expect(stderr).toBe("windlass: unknown command 'old'\nAdd --help to see how.\n");
  const { stdout } = await run([WINDLASS, '--help']);
  for (const known of ['up', 'migrate', 'keys'])
    expect(stdout).toMatch(new RegExp(`^  ${known} `, 'm'));
  expectRefusal(await run(['dist/workers/main.js', 'remote', 'magic']), [
    /unknown type of worker: magic\. Name one or more of remote, video, parse, upkeep$/,
  ]);
});

test('keys new prints settings that work together, and others each time', async () => {
  const printed = await Promise.all([1, 2].map(() => run([WINDLASS, 'keys', 'new'])));
  const [first, second] = printed.map(({ code, stdout, stderr }) => {
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.split('\n').filter(line => /^[A-Z_]+=/.test(line));
    return readConfig(Object.fromEntries(lines.map(line => line.split(/=(.*)/s))));
  });
  const { SECRET_KEY = '', SEAL_PUBLIC_KEY = '', SEAL_PRIVATE_KEYS = '' } = first ?? {};
  expect(SECRET_KEY.length).toBeGreaterThanOrEqual(43);
  const context = { sid: 's', owner: 'o', hostname: 'h' };
  const given = { destination: 'there', secret: { password: 'p' } };
  const sealed = await seal(SEAL_PUBLIC_KEY, context, given);
  expect(await unseal(SEAL_PRIVATE_KEYS, context, sealed)).toEqual(given);
  for (const name of ['SECRET_KEY', 'SEAL_PUBLIC_KEY', 'SEAL_PRIVATE_KEYS'] as const)
    expect(second?.[name]).not.toBe(first?.[name]);
});

test('a Node that is too old is told so in one line', async () => {
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.18.3' } })`;
  const script = fileURLToPath(new URL('../../scripts/run.mjs', import.meta.url));
  const child = spawn(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(old)}`, script, WINDLASS, 'up'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', piece => {
      printed += piece;
    });
  const [code] = await once(child, 'close');
  expect([code, printed]).toEqual([1, 'Windlass needs Node.js 20.19 or newer; this is 20.18.3.\n']);
});

describe('a port', () => {
  test('in use is told in one line, before anything is made', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const dataDir = join(directory.path, 'untouched');
    try {
      const ended = await run([WINDLASS, 'up'], { PORT: String(port), DATA_DIR: dataDir });
      expectRefusal(ended, [`^windlass: Port ${port} on 127\\.0\\.0\\.1 is in use\\..+PORT`]);
      expect(existsSync(dataDir)).toBe(false);
    } finally {
      server.close();
    }
  });

  test('on an address that is not of this machine is told so', async () => {
    const ended = await run([WINDLASS, 'up'], { HOST: '192.0.2.1' });
    expectRefusal(ended, [/^windlass: Windlass cannot listen on 192\.0\.2\.1:8080 .*HOST/]);
  });
});

test('an account that there is not is told in one line, before anything is made', async () => {
  const dataDir = join(directory.path, 'no-account');
  for (const setting of ['API_USER', 'WORKER_USER']) {
    const settings = { [setting]: 'nobody-of-this-name', DATA_DIR: dataDir };
    expectRefusal(await run([WINDLASS, 'up'], settings), [`^windlass: ${setting}: `]);
    expect(existsSync(dataDir)).toBe(false);
  }
});

test('a password of another time is told in one line, and what to do about it', async () => {
  const dataDir = join(directory.path, 'other-password');
  await copyCluster(dataDir);
  writeFileSync(join(dataDir, 'postgres.password'), 'hidden-word');
  const settings = { DATA_DIR: dataDir, PORT: String(await findFreePort()) };
  for (const words of [['up'], ['audit', 'verify']])
    expectRefusal(await run([WINDLASS, ...words], settings), [
      /^windlass: The embedded database has another password than postgres\.password\. .*remove it/,
    ]);
});

test('a database that cannot be reached is told in one line, without its password', async () => {
  const url = `postgres://someone:hidden-word@127.0.0.1:${await findFreePort()}/windlass`;
  const settings = {
    DATABASE_URL: url,
    PORT: String(await findFreePort()),
    DATA_DIR: directory.path,
  };
  for (const words of [['up'], ['migrate'], ['audit', 'verify']]) {
    const ended = await run([WINDLASS, ...words], settings);
    expectRefusal(ended, [/^windlass: The database at 127\.0\.0\.1:\d+ cannot be reached\. /]);
    expect(ended.stderr).not.toContain('hidden-word');
  }
});

test('the first start makes up a password and prints it once; SIGTERM and SIGINT end it with 0', async () => {
  const dataDir = join(directory.path, 'first');
  const port = String(await findFreePort());
  const start = async () => {
    const program = startProgram({
      args: [WINDLASS, 'up'],
      cwd: directory.path,
      settings: { PORT: port, DATA_DIR: dataDir },
    });
    await waitFor(() => program.stdout().includes('Windlass is ready'), {
      what: 'it to be ready',
      timeoutMs: 60_000,
    });
    return program;
  };
  const whoAmI = async (password: string) =>
    (
      await fetch(`http://127.0.0.1:${port}/api/users/-`, {
        headers: { Authorization: `Basic ${btoa(`admin:${password}`)}` },
      })
    ).status;

  const first = await start();
  const password = /^Administrator: admin, password: (\S{16}) \(shown only now\)$/m.exec(
    first.stdout(),
  )?.[1];
  expect(await whoAmI(password ?? '')).toBe(200);
  expect(await whoAmI('admin')).toBe(401);
  first.child.kill('SIGTERM');
  expect(await first.ended).toMatchObject({ code: 0 });

  const second = await start();
  const lines = second.stdout().split('\n');
  // What root has no accounts for.
  if (lines[0]?.startsWith('Running as root')) lines.shift();
  expect(lines).toEqual([`Windlass is ready at http://127.0.0.1:${port}`, '']);
  expect(await whoAmI(password ?? '')).toBe(200);
  second.child.kill('SIGINT');
  const { code, stderr } = await second.ended;
  expect(code).toBe(0);
  expect(stderr).not.toContain(password);
  expect(listProcesses().filter(({ command }) => command.includes(dataDir))).toEqual([]);
});

describeUnless(missingRoot(), 'a full disk', () => {
  test('is reported in one line', async () => {
    const dataDir = join(directory.path, 'full');
    mkdirSync(dataDir);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m,mode=755', 'tmpfs', dataDir]);
    try {
      const port = String(await findFreePort());
      const ended = await run([WINDLASS, 'up'], { PORT: port, DATA_DIR: dataDir });
      expectRefusal(ended, [/^windlass: .*the disk of .* is full\. Free some space/]);
    } finally {
      execFileSync('umount', ['-l', dataDir]);
    }
  });
});

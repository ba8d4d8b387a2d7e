import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { findFreePort } from '../../servers/free-port.ts';
import { MIGRATIONS, readMigrations } from '../../shared/database/migrations/migration-files.ts';
import { listContracts } from '../../shared/database/migrations/migration-rules.ts';
import { generateSealKeys } from '../../shared/secrets/secrets.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  beginUpload,
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
  someBytes,
} from '../harness/clients/uploads.ts';
import { startTestPostgres } from '../harness/databases/postgres-server.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  addHost,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { type RunningProgram, startProgram } from '../harness/run-program.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import {
  buildPreviousRelease,
  hasCommit,
  isAncestor,
  missingPreviousRelease,
  PREVIOUS_RELEASE,
} from '../harness/stacks/previous-release.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const missing = missingPrograms('sshd') ?? missingPreviousRelease();

describeUnless(missing, 'programs of the previous release, on the newest schema', () => {
  const directory = makeTempDir('releases');
  const postgres = useStarted(() => startTestPostgres());
  const sshd = useStarted(() => startTestSshd());
  const roots: Record<'old' | 'new', string | undefined> = { old: undefined, new: undefined };
  const running = new Set<RunningProgram>();
  let settings: Record<string, string>;
  const clients = {} as Record<'old' | 'new', Client>;
  const workers = {} as Record<'old' | 'new', RunningProgram>;
  let sid: string;

  const start = (release: 'old' | 'new', args: string[], own: Record<string, string> = {}) => {
    const program = startProgram({
      args,
      cwd: directory.path,
      settings: { ...settings, ...own },
      root: roots[release],
    });
    running.add(program);
    void program.ended.then(() => running.delete(program));
    return program;
  };
  const migrate = (release: 'old' | 'new') => start(release, ['dist/cli/main.js', 'migrate']).ended;
  const startApi = async (release: 'old' | 'new') => {
    const port = String(await findFreePort());
    start(release, ['dist/api/main.js'], { PORT: port });
    const url = `http://127.0.0.1:${port}`;
    clients[release] = new Client(url, 'admin', settings.ADMIN_PASSWORD ?? '');
    await waitFor(async () => (await fetch(`${url}/healthz`)).ok, {
      what: `the ${release} API`,
      timeoutMs: 30_000,
    });
  };
  /** Adds a worker, and waits until all that run are seen. */
  const startWorker = async (release: 'old' | 'new', count: number) => {
    workers[release] = start(release, ['dist/workers/main.js']);
    await waitFor(
      async () => {
        const answer = await clients.old.fetch('/readyz');
        return ((await answer.json()) as { workers: number }).workers === count;
      },
      { what: `${count} workers to be alive`, timeoutMs: 30_000 },
    );
  };
  const endWorker = async (release: 'old' | 'new', signal: NodeJS.Signals) => {
    workers[release].child.kill(signal);
    await workers[release].ended;
  };

  beforeAll(async () => {
    roots.old = buildPreviousRelease();
    const keys = await generateSealKeys();
    settings = {
      HOST: '127.0.0.1',
      DATABASE_URL: await postgres.createDatabase('releases'),
      DATA_DIR: join(directory.path, 'data'),
      ADMIN_PASSWORD: randomBytes(9).toString('base64url'),
      SECRET_KEY: randomBytes(32).toString('base64url'),
      SEAL_PUBLIC_KEY: keys.publicKey,
      SEAL_PRIVATE_KEYS: keys.privateKey,
    };
    expect(await migrate('old')).toMatchObject({ code: 0, stderr: '' });
    await startApi('old');
    await startWorker('old', 1);
    await addHost(clients.old, sshd);
    sid = await openSession(clients.old, sshd);
  });
  afterAll(async () => {
    for (const { child } of running) child.kill('SIGTERM');
    await Promise.all([...running].map(({ ended }) => ended));
    directory.remove();
  });

  /** A command that prints `begun`, waits for its file, and prints `done`. */
  const beginCommand = async (through: 'old' | 'new', name: string) => {
    const job = await launchAsync(
      clients[through],
      sid,
      `echo begun; while [ ! -e "$HOME/${name}" ]; do sleep 0.1; done; echo done`,
    );
    await waitFor(async () => (await readOutput(clients[through], job.id)).length > 0, {
      what: 'the command to begin',
      timeoutMs: 30_000,
    });
    return job.id;
  };
  const endCommand = async (id: string, name: string) => {
    writeFileSync(join(sshd.home, name), '');
    for (const client of Object.values(clients)) {
      expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
      expect((await readOutput(client, id)).toString()).toBe('begun\ndone\n');
    }
  };
  const untilHeldBy = (id: string, release: 'old' | 'new') =>
    waitFor(
      async () => {
        const { state, worker } = await clients.old.get<Job>(`/api/jobs/${id}`);
        const pid = Number(/-(\d+)-[0-9a-z]{6}$/.exec(worker ?? '')?.[1]);
        return state === 'running' && pid === workers[release].child.pid;
      },
      { what: `the ${release} worker to follow the command`, timeoutMs: 60_000 },
    );
  /** A command, an upload that is parsed, and the list of jobs. */
  const useService = async (client: Client) => {
    const answer = await client.post('/api/remotes/launch', { sid, command: 'echo works' });
    expect(answer).toMatchObject({ output: 'works\n' });
    const { mid } = await makeModel(client);
    const uid = await beginUpload(client, mid, ['a']);
    const stored = await putPart(client, partPath(uid, 0, 0), someBytes(100_000));
    expect(stored.ok, await stored.text()).toBe(true);
    expect((await finishUpload(client, uid, [1])).status).toBe(202);
    await waitFor(async () => (await readUpload(client, uid)).state === 'done', {
      what: 'the upload to be parsed',
      timeoutMs: 30_000,
    });
    const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=2');
    expect(items).toMatchObject([{ state: 'succeeded' }, { state: 'succeeded' }]);
  };

  test('go on while the newest migrations are applied, and after', async () => {
    await useService(clients.old);
    const id = await beginCommand('old', 'during');
    expect(await migrate('new')).toMatchObject({ code: 0, stderr: '' });
    await endCommand(id, 'during');
    await useService(clients.old);
  });

  test('hand their jobs to new workers, and new APIs serve what they began', async () => {
    await startApi('new');
    const id = await beginCommand('old', 'handed-over');
    await startWorker('new', 2);
    await endWorker('old', 'SIGTERM');
    await untilHeldBy(id, 'new');
    await endCommand(id, 'handed-over');
    await useService(clients.old);
    await useService(clients.new);
  });

  test('take jobs of new workers', async () => {
    const id = await beginCommand('new', 'taken');
    await startWorker('old', 2);
    await endWorker('new', 'SIGTERM');
    await untilHeldBy(id, 'old');
    await endCommand(id, 'taken');
    await useService(clients.new);
  });

  test('lose their jobs to new workers when they are killed, and the other way round', async () => {
    const lost = await beginCommand('old', 'lost');
    await startWorker('new', 2);
    await endWorker('old', 'SIGKILL');
    await untilHeldBy(lost, 'new');
    await endCommand(lost, 'lost');
    const again = await beginCommand('new', 'lost-again');
    await startWorker('old', 2);
    await endWorker('new', 'SIGKILL');
    await untilHeldBy(again, 'old');
    await endCommand(again, 'lost-again');
  });

  test('a host that a program of either release changes ends the sessions that the older one opened', async () => {
    const response = await clients.old.fetch('/api/hosts/host', {
      method: 'PUT',
      body: JSON.stringify({ address: 'localhost' }),
    });
    expect(response.status).toBe(200);
    const launch = (client: Client) =>
      client.fetch('/api/remotes/launch', {
        method: 'POST',
        body: JSON.stringify({ sid, command: 'true' }),
      });
    for (const client of Object.values(clients))
      await expectProblem(await launch(client), 409, 'host_changed');
  });
});

describeUnless(missingPreviousRelease(), 'a migration takes away', () => {
  test.each(listContracts(readMigrations(MIGRATIONS)).concat(PREVIOUS_RELEASE))(
    'what %s did not need, and so the previous release does not',
    commit => {
      expect(hasCommit(commit), `git knows ${commit}`).toBe(true);
      expect(isAncestor(commit, PREVIOUS_RELEASE), 'it is in the previous release').toBe(true);
    },
  );
});

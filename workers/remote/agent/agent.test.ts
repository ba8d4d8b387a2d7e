import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openAgent } from './bootstrap.ts';
import type { AgentClient, RunEvent } from './client.ts';
import { LocalExec } from './local-exec.ts';

const ENV = {
  PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
  USER: 'tester',
  LOGNAME: 'tester',
};
const MiB = 1024 * 1024;
const root = mkdtempSync(join(tmpdir(), 'agent-test-'));
let lastId = 0;
const newName = () => `r-${++lastId}-${process.pid}`;

beforeAll(() => symlinkSync('/usr/bin/busybox', join(root, 'ash')));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const SH_FAMILY = {
  dash: '/usr/bin/dash',
  bash: '/usr/bin/bash',
  busybox: join(root, 'ash'),
  ksh: '/usr/bin/ksh',
  zsh: '/usr/bin/zsh',
};
const OTHERS = { csh: '/usr/bin/csh', tcsh: '/usr/bin/tcsh', fish: '/usr/bin/fish' };

const open: AgentClient[] = [];
afterEach(async () => {
  for (const client of open.splice(0)) {
    client.close();
    await client.closed;
  }
});

function makeHost(shell: string, env: Record<string, string> = {}): LocalExec {
  const home = mkdtempSync(join(root, 'home-'));
  return new LocalExec({ home, shell, env: { ...ENV, ...env } });
}

async function connect(host: LocalExec, spoolLimitBytes = 1024 * MiB): Promise<AgentClient> {
  const client = await openAgent(host, { timeoutMs: 20_000, spoolLimitBytes });
  open.push(client);
  return client;
}

interface Outcome {
  stdout: Buffer;
  stderr: Buffer;
  types: string[];
  last: RunEvent | undefined;
}

/** Reads a run to its end, acknowledging what it has read. */
async function collect(
  client: AgentClient,
  id: string,
  events: AsyncIterable<RunEvent>,
  start = { stdout: 0, stderr: 0 },
): Promise<Outcome> {
  const parts: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
  const at = { ...start };
  const types: string[] = [];
  let last: RunEvent | undefined;
  for await (const event of events) {
    last = event;
    if (event.type !== 'output') {
      types.push(event.type);
      continue;
    }
    expect(event.offset).toBe(at[event.stream]);
    parts[event.stream].push(event.bytes);
    at[event.stream] += event.bytes.length;
    client.ack(id, at.stdout, at.stderr);
  }
  return { stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr), types, last };
}

async function runCommand(client: AgentClient, command: string): Promise<Outcome & { id: string }> {
  const id = newName();
  return { id, ...(await collect(client, id, client.run({ id, token: newName(), command }))) };
}

/** Waits until check is true; the test's own time-out is the limit. */
async function until(check: () => boolean): Promise<void> {
  while (!check()) await new Promise(resolve => setTimeout(resolve, 10));
}

function processesOf(host: LocalExec): string[] {
  const found: string[] = [];
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      const line = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
      if (line && environment.includes(`HOME=${host.account.home}`)) found.push(`${pid} ${line}`);
    } catch {}
  }
  return found;
}

function filesOf(host: LocalExec): string[] {
  return readdirSync(join(host.account.home, '.windlass'), {
    recursive: true,
    encoding: 'utf8',
  }).sort();
}

describe.each(Object.entries({ ...SH_FAMILY, ...OTHERS }))('account shell %s', (name, shell) => {
  test('runs, reports exactly, repeats nothing and leaves nothing', async () => {
    const host = makeHost(shell);
    const client = await connect(host);
    expect(client.hello).toMatchObject({ version: 1, home: host.account.home, shell });
    expect(client.hello.cores).toBeGreaterThan(0);
    expect(client.hello.freeBytes).toBeGreaterThan(MiB);

    const ok = await runCommand(client, 'true');
    expect(ok.types).toEqual(['running', 'ended']);
    expect(ok.last).toEqual({
      type: 'ended',
      code: 0,
      stdoutBytes: 0,
      stderrBytes: 0,
      diskFull: false,
    });

    const quoted = await runCommand(client, "echo it\\'s; echo 'two $x `y` \"z\" \\ ü'; exit 3");
    expect(quoted.stdout.toString()).toBe('it\'s\ntwo $x `y` "z" \\ ü\n');
    expect(quoted.last).toMatchObject({ type: 'ended', code: 3 });

    const killed = await runCommand(client, name === 'fish' ? 'kill -9 $fish_pid' : 'kill -9 $$');
    expect(killed.last).toMatchObject({ type: 'ended', code: 137, stderrBytes: 0 });

    const id = newName();
    const token = newName();
    const script = `echo out\necho "it's" >&2\nprintf 'a\\000b\\377'\nexit 7\n# ${'x'.repeat(300_000)}`;
    for (const _ of [1, 2]) {
      const result = await collect(
        client,
        id,
        client.run({ id, token, script: `echo x >>ledger\n${script}` }),
      );
      expect(result.stdout).toEqual(Buffer.from('out\na\0b\xff', 'latin1'));
      expect(result.stderr.toString()).toBe("it's\n");
      expect(result.last).toMatchObject({ type: 'ended', code: 7, stdoutBytes: 8, stderrBytes: 5 });
    }
    const other = await collect(client, id, client.run({ id, token: newName(), script }));
    expect(other.types).toEqual(['taken']);
    expect(readFileSync(join(host.account.home, 'ledger'), 'utf8')).toBe('x\n');
    const unknown = await collect(
      client,
      'unknown',
      client.follow({ id: 'unknown', stdout: 0, stderr: 0 }),
    );
    expect(unknown.types).toEqual(['absent']);

    for (const run of [ok.id, quoted.id, killed.id, id]) await client.forget(run);
    client.close();
    await client.closed;
    await until(() => processesOf(host).length === 0);
    expect(filesOf(host).filter(file => file.includes('/') || file.endsWith('.sh'))).toEqual([
      expect.stringMatching(/^agent-[0-9a-f]{16}\.sh$/),
    ]);
  });

  test('gives a command the environment, files and signals of a plain exec', async () => {
    const odd = {
      ODD: 'a\nb "c" \'d\' $e `f` \\',
      name: 'mine',
      dir: 'mine',
      text: 'mine',
      code: 'mine',
      PWD: '/nowhere',
    };
    const host = makeHost(shell, odd);
    const client = await connect(host);
    const probe =
      'pwd; umask; ls -l /proc/self/fd | wc -l; grep -E "^Sig(Ign|Blk)" /proc/self/status; env -0 | sort -z | tr "\\0" "@"';
    const clean = (text: string) =>
      text.replace(/@_=[^@]*/g, '').replace(/@WINDLASS_RUN=[^@]*/, '');
    const plain = await host.exec(probe);
    plain.stdin.end();
    let expected = '';
    for await (const chunk of plain.stdout) expected += chunk;
    const result = await runCommand(client, probe);
    expect(clean(result.stdout.toString())).toBe(clean(expected));
    expect(result.stdout.toString()).toContain(
      `@WINDLASS_RUN=${host.account.home}/.windlass/runs/`,
    );
    const input = await runCommand(client, 'cat; readlink /proc/self/fd/0');
    expect(input.stdout.toString()).toBe('/dev/null\n');
  });
});

describe.each(Object.entries(SH_FAMILY))('agent read by %s', (_name, shell) => {
  test('spools large binary output exactly, and follows it from the middle', async () => {
    const client = await connect(makeHost(shell));
    const command =
      'head -c 20971520 /dev/zero | openssl enc -aes-128-ctr -K 00 -iv 00 2>/dev/null | tee copy; echo end >&2';
    const result = await runCommand(client, command);
    const copy = readFileSync(join(client.hello.home, 'copy'));
    const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
    expect(result.stdout.length).toBe(20 * MiB);
    expect(hash(result.stdout)).toBe(hash(copy));
    expect(result.stderr.toString()).toBe('end\n');
    expect(
      readdirSync(runDirectory(client, result.id)).filter(file => file.startsWith('o.')).length,
    ).toBeLessThan(8);
  });

  test('survives kill -9 of its serve; another follows from the middle', async () => {
    const host = makeHost(shell);
    const first = await connect(host);
    const id = newName();
    const command =
      'i=0; while [ $i -lt 300000 ]; do echo line $i; i=$((i+1)); done; while ! test -e go; do sleep 0.02; done; echo last; exit 5';
    const events = first.run({ id, token: newName(), command: `sh -c '${command}'` });
    let at = 0;
    let killed = false;
    await expect(async () => {
      for await (const event of events) {
        if (event.type !== 'output') continue;
        at = event.offset + event.bytes.length;
        if (at > 100_000 && !killed) killed = process.kill(host.pids.at(-1) ?? 0, 'SIGKILL');
      }
    }).rejects.toMatchObject({ code: 'remote_connection_failed' });
    await first.closed;
    const second = await connect(host);
    const rest = collect(second, id, second.follow({ id, stdout: 12_345, stderr: 0 }), {
      stdout: 12_345,
      stderr: 0,
    });
    writeFileSync(join(host.account.home, 'go'), '');
    const result = await rest;
    const whole = Array.from({ length: 300_000 }, (_, i) => `line ${i}\n`).join('') + 'last\n';
    expect(result.stdout.toString()).toBe(whole.slice(12_345));
    expect(result.last).toMatchObject({ type: 'ended', code: 5, stdoutBytes: whole.length });
    await second.forget(id);
    second.close();
    await second.closed;
    await until(() => processesOf(host).length === 0);
    expect(filesOf(host).filter(file => file.includes('/'))).toEqual([]);
  });

  test('two serves racing with one id start it once', async () => {
    const host = makeHost(shell);
    const clients = [await connect(host), await connect(host)];
    for (let round = 0; round < 20; round++) {
      const id = newName();
      const outcomes = await Promise.all(
        clients.map(client =>
          collect(client, id, client.run({ id, token: newName(), command: `echo ${id} >>ledger` })),
        ),
      );
      expect(outcomes.map(({ last }) => last?.type).sort()).toEqual(['ended', 'taken']);
    }
    const ledger = readFileSync(join(host.account.home, 'ledger'), 'utf8').trim().split('\n');
    expect(ledger.length).toBe(20);
    expect(new Set(ledger).size).toBe(20);
  });

  test('a run whose minder was killed is lost', async () => {
    const host = makeHost(shell);
    const client = await connect(host);
    const id = newName();
    const outcome = collect(
      client,
      id,
      client.run({ id, token: newName(), command: 'touch started; sleep 300' }),
    );
    await until(() => existsSync(join(host.account.home, 'started')));
    const [, , pid] = readFileSync(join(runDirectory(client, id), 'minder'), 'utf8').split(' ');
    process.kill(Number(pid), 'SIGKILL');
    expect((await outcome).last).toEqual({ type: 'lost' });
    expect(await client.stop(id)).toEqual({ how: 'mark' });
    const again = await collect(client, id, client.follow({ id, stdout: 0, stderr: 0 }));
    expect(again.last).toEqual({ type: 'lost' });
  });

  test('stop reaches children that ignore TERM or left the session, and keeps the output', async () => {
    const host = makeHost(shell);
    const client = await connect(host);
    const id = newName();
    const stubborn = "sh -c 'trap : TERM; echo stubborn; touch a; while :; do sleep 1; done' & ";
    const gone = "setsid sh -c 'trap : TERM; echo gone; touch b; sleep 300; sleep 300' & ";
    const outcome = collect(
      client,
      id,
      client.run({
        id,
        token: newName(),
        command: `sh -c "${stubborn.replaceAll('"', '')} ${gone} wait"`,
      }),
    );
    await until(() => ['a', 'b'].every(file => existsSync(join(host.account.home, file))));
    expect(await client.stop(id)).toEqual({ how: 'mark' });
    const result = await outcome;
    expect(result.last).toMatchObject({ type: 'ended', code: 143 });
    expect(result.stdout.toString().split('\n').sort()).toEqual(['', 'gone', 'stubborn']);
    expect(processesOf(host).filter(line => line.includes('sleep 300'))).toEqual([]);
    expect(await client.stop(id)).toEqual({ how: 'ended' });
  });

  test('what was stopped before it started never starts', async () => {
    const host = makeHost(shell);
    const client = await connect(host);
    const id = newName();
    expect(await client.stop(id)).toEqual({ how: 'never' });
    const run = await collect(
      client,
      id,
      client.run({ id, token: newName(), command: 'touch ran' }),
    );
    expect(run.types).toEqual(['stopped']);
    const follow = await collect(client, id, client.follow({ id, stdout: 0, stderr: 0 }));
    expect(follow.types).toEqual(['stopped']);
    expect(existsSync(join(host.account.home, 'ran'))).toBe(false);
  });

  test('past the spool limit the command waits and nothing is lost', async () => {
    const host = makeHost(shell);
    const client = await connect(host, 2 * MiB);
    const id = newName();
    const events = client.run({
      id,
      token: newName(),
      command: "head -c 12582912 /dev/zero | tr '\\0' x; touch done",
    });
    let read = 0;
    let stalled = false;
    for await (const event of events) {
      if (event.type !== 'output') continue;
      read += event.bytes.length;
      if (stalled) {
        client.ack(id, read, 0);
      } else if (read >= 2 * MiB) {
        await until(() => /pipe_write/.test(waitChannels(host)));
        expect(existsSync(join(host.account.home, 'done'))).toBe(false);
        stalled = true;
        client.ack(id, read, 0);
      }
    }
    expect(read).toBe(12 * MiB);
    expect(existsSync(join(host.account.home, 'done'))).toBe(true);
  });

  test('ends everything that serves a client when standard input does, and no run', async () => {
    const host = makeHost(shell);
    const client = await connect(host);
    const id = newName();
    const events = client.run({ id, token: newName(), command: 'touch started; sleep 300' });
    await events.next();
    await until(() => existsSync(join(host.account.home, 'started')));
    client.close();
    await client.closed;
    await until(() => !processesOf(host).some(line => /\bserve\b|body/.test(line)));
    expect(filesOf(host).filter(file => file.startsWith('serve/'))).toEqual([]);
    expect(filesOf(host).filter(file => /^runs\/[^/]*$/.test(file)).length).toBe(1);
    const next = await connect(host);
    const outcome = collect(next, id, next.follow({ id, stdout: 0, stderr: 0 }));
    await next.stop(id);
    expect((await outcome).last).toMatchObject({ type: 'ended', code: 143 });
  });
});

/** The kernel functions in which the host's processes wait. */
function waitChannels(host: LocalExec): string {
  return processesOf(host)
    .map(line => {
      try {
        return readFileSync(`/proc/${line.split(' ')[0]}/wchan`, 'utf8');
      } catch {
        return ''; // it has ended since
      }
    })
    .join(' ');
}

function runDirectory(client: AgentClient, id: string): string {
  const base = join(client.hello.home, '.windlass');
  const [, name = ''] = readFileSync(join(base, 'started', id), 'utf8')
    .trim()
    .split(' ');
  return join(base, 'runs', name);
}

void execFileSync;
void mkdirSync;

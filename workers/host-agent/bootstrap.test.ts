import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import {
  collect,
  FAMILY,
  listRuns,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { makeShBash, SHADOWS } from '../../test/harness/hosts/sh-is-bash.ts';
import { missingPrograms, skipTest } from '../../test/harness/skip.ts';
import { cksum, loadAgentFile } from './agent-file.ts';
import { openAgent } from './bootstrap.ts';

const harness = useAgentHarness();

const SHELLS = [...FAMILY, 'tcsh', 'fish']
  .map(name => findProgram(name))
  .filter(path => path !== undefined);
const DASH = findProgram('dash') ?? '/bin/sh';
const BASH = findProgram('bash') ?? '/bin/bash';
const options = { timeoutMs: 20_000, spoolLimitBytes: 2 ** 30 };

describe.each(SHELLS)('an account with %s', shell => {
  test('is sent the file once, and again if it is damaged; a known shell saves the probe', async () => {
    const host = harness.makeHost(shell);
    const path = join(host.account.home, '.windlass', loadAgentFile().name);
    const { hello } = await harness.connect(host);
    expect(readFileSync(path)).toEqual(loadAgentFile().content);
    expect(statSync(join(host.account.home, '.windlass')).mode & 0o777).toBe(0o700);
    const { ino } = statSync(path);
    await harness.connect(host);
    expect(statSync(path).ino).toBe(ino);
    expect(host.commands.length).toBe(4);
    truncateSync(path, 1000);
    await harness.connect(host);
    expect(readFileSync(path)).toEqual(loadAgentFile().content);
    await harness.connect(host, { shell: hello.shell });
    expect(host.commands.length).toBe(7);
    rmSync(path);
    const client = await harness.connect(host, { shell: hello.shell });
    expect(host.commands.length).toBe(10);
    expect((await harness.run(client, 'echo here')).stdout.toString()).toBe('here\n');
    expect(readdirSync(join(host.account.home, '.windlass')).sort()).toEqual([
      loadAgentFile().name,
      'runs',
      'serve',
      'started',
    ]);
  });

  test('reports whether the directory of fences is the same as before', async () => {
    const host = harness.makeHost(shell);
    const { hello } = await harness.connect(host);
    expect(hello.fences).toMatch(/^\d+\b/);
    expect((await harness.connect(host)).hello.fences).toBe(hello.fences);
    const base = join(host.account.home, '.windlass');
    // Prepared attempts would not notice that.
    await harness.close();
    renameSync(base, `${base}-of-another`);
    expect((await harness.connect(host)).hello.fences).not.toBe(hello.fences);
  });

  test('whose home is not writable fails with a hint', async () => {
    const host = harness.makeHost(shell);
    writeFileSync(join(host.account.home, '.windlass'), 'a file');
    await expect(openAgent(host, options)).rejects.toMatchObject({
      code: 'agent_startup_failed',
      hint: expect.stringContaining('"agent": false'),
    });
  });
});

test('a shell whose name is no text for people is /bin/sh', async () => {
  const host = harness.makeHost(BASH);
  host.account.shell = join(host.account.home, 'sh\u0001');
  symlinkSync(BASH, host.account.shell);
  const client = await harness.connect(host);
  expect(client.hello.shell).toBe('/bin/sh');
  expect((await harness.run(client, 'echo here')).stdout.toString()).toBe('here\n');
});

test('an exported bash function reaches commands', async () => {
  const host = harness.makeHost(BASH, { 'BASH_FUNC_module%%': '() {  echo "loaded $1"\n}' });
  const client = await harness.connect(host);
  expect((await harness.run(client, 'module gcc')).stdout.toString()).toBe('loaded gcc\n');
});

test.each([
  ['bash', (host: LocalExec) => host],
  ['bash as /bin/sh', makeShBash],
])(
  'functions named as utilities, and as functions of the agent, are for commands alone: %s',
  async (_, of) => {
    const host = of(
      harness.makeHost(BASH, {
        'BASH_FUNC_main%%': '() { builtin echo "main $1"; }',
        'BASH_FUNC_with-a-hyphen%%': '() { builtin echo "it\'s"; }',
        ...SHADOWS,
      }),
    );
    for (const shell of [BASH, '/bin/sh']) {
      const client = await harness.connect(host, { shell });
      const long = await harness.run(client, 'seq 200000');
      expect(long.last).toMatchObject({ type: 'ended', code: 0 });
      expect(long.stdout.toString()).toBe(
        execFileSync('seq', ['200000'], { maxBuffer: 2 ** 24 }).toString(),
      );
      const { last, stderr } = await harness.run(client, 'sleep 0.1; seq 3 >&2; exit 7');
      expect([last, stderr.toString()]).toMatchObject([{ type: 'ended', code: 7 }, '1\n2\n3\n']);
      await client.forget(long.id);
      expect(await listRuns(client)).toHaveLength(1);
      await harness.close();
      rmSync(join(host.account.home, '.windlass'), { recursive: true });
    }
    const client = await harness.connect(host);
    const command = 'builtin echo a | cat; printf b; main c; with-a-hyphen';
    expect((await harness.run(client, command)).stdout.toString()).toBe(
      "     1\ta\n<b>\nmain c\nit's\n",
    );
  },
);

test("what bash's start-up files export for an SSH session reaches commands; they are read once", async () => {
  const host = harness.makeHost(BASH, { SSH_CLIENT: '127.0.0.1 1 2' });
  const { home } = host.account;
  writeFileSync(join(home, '.bashrc'), 'echo x >>~/read; export FROM_RC=yes; PATH=$PATH:/rc\n');
  const client = await harness.connect(host, { shell: BASH });
  const reads = () => readFileSync(join(home, 'read'), 'utf8');
  const before = reads();
  const result = await harness.run(client, 'echo $FROM_RC; echo $PATH');
  expect(result.stdout.toString()).toMatch(/^yes\n[^\n]*[^c]:\/rc\n$/);
  expect(reads()).toBe(before);
});

test.each([
  ['bash', '.noise'],
  ['zsh', '.zshenv'],
  ['tcsh', '.tcshrc'],
  ['fish', '.config/fish/config.fish'],
] as const)('the output of %s’s start-up files is quoted in the error', async (name, file) => {
  const shell = findProgram(name);
  if (shell === undefined) return expect(SHELLS).not.toContain(name);
  const host = harness.makeHost(shell);
  const { home, env } = host.account;
  Object.assign(env, { ZDOTDIR: home, BASH_ENV: join(home, '.noise') });
  mkdirSync(join(home, '.config/fish'), { recursive: true });
  writeFileSync(join(home, file), 'echo "Welcome to the machine"\n');
  const message = expect.stringContaining('Welcome to the machine');
  for (const known of [undefined, shell]) {
    const opening = openAgent(host, { ...options, shell: known });
    await expect(opening).rejects.toMatchObject({ code: 'startup_files_print', message });
  }
});

const TOOLS =
  'sh cat cut dd df find getconf grep mkdir mkfifo mv rm sed sleep touch tr uname wc cksum'.split(
    ' ',
  );

test.each([
  ['perl', ['-e', 'print $^X']],
  ['python3', ['-c', 'import sys; print(sys.executable)']],
] as const)('%s stands in for setsid', async (tool, tellPath) => {
  // The interpreter itself, because a wrapper on PATH may need more than this PATH.
  const path = execFileSync(tool, tellPath).toString().trim();
  const links = TOOLS.map(name => [name, findProgram(name) ?? '']);
  const bin = harness.makePath({ ...Object.fromEntries(links), [tool]: path });
  const client = await harness.connect(harness.makeHost(DASH, { PATH: bin }));
  const command = 'grep SigIgn /proc/self/status; echo $$; cut -d" " -f6 /proc/self/stat';
  const result = await harness.run(client, command);
  const [ignored = '', pid, session] = result.stdout.toString().trim().split('\n');
  expect(ignored).toMatch(/^SigIgn:\s*0+$/);
  expect(session).toBe(pid);
  const events = client.run({ id: 'long', token: 'one', command: 'sleep 300' });
  await events.next();
  expect(await client.stop('long')).toEqual({ result: 'killed' });
  expect((await collect({ client, id: 'long', events })).last).toMatchObject({ code: 143 });
});

test('without setsid, perl and python3 the agent refuses to serve', async () => {
  const tools = ['sh', 'cat', 'cksum', 'wc', 'mkdir', 'mv', 'rm'];
  const links = tools.map(name => [name, findProgram(name) ?? '']);
  const host = harness.makeHost(DASH, { PATH: harness.makePath(Object.fromEntries(links)) });
  await expect(openAgent(host, options)).rejects.toMatchObject({
    code: 'host_unsupported',
    message: expect.stringContaining('needs setsid, perl or python3'),
  });
});

test('a file that another version’s sweep removes before it is read is installed again', async () => {
  const host = harness.makeHost(DASH);
  await harness.connect(host);
  const remove = () => rmSync(join(host.account.home, '.windlass', loadAgentFile().name));
  let hasRemoved = false;
  const exec: typeof host.exec = (command, signal) => {
    if (!hasRemoved && command.includes(' serve ')) {
      hasRemoved = true;
      remove();
    }
    return host.exec(command, signal);
  };
  const client = await openAgent({ exec }, options);
  expect(hasRemoved).toBe(true);
  expect((await harness.run(client, 'echo here')).stdout.toString()).toBe('here\n');
  client.close();
});

test('a file that is removed before a serve marks it as in use is installed again', async () => {
  const host = harness.makeHost(DASH);
  const base = join(host.account.home, '.windlass');
  mkdirSync(base, { mode: 0o700 });
  const mark = /^ {2}true >"\$serve_dir\/\$\{agent##/m;
  const content = loadAgentFile().content.toString();
  expect(content).toMatch(mark);
  const removed = content.replace(mark, line => `  rm "$agent"\n${line}`);
  writeFileSync(join(base, loadAgentFile().name), removed);
  const client = await harness.connect(host, { shell: DASH });
  expect((await harness.run(client, 'echo here')).stdout.toString()).toBe('here\n');
  expect(readdirSync(join(base, 'serve')).length).toBe(1);
});

test('the agent refuses to serve if neither the account’s shell nor /bin/sh counts past 2 GiB', async () => {
  const host = harness.makeHost(DASH);
  const base = join(host.account.home, '.windlass');
  mkdirSync(base, { mode: 0o700 });
  const content = loadAgentFile().content.toString();
  // The result of mksh.
  const counted = content.replaceAll('$((2147483647 + 1))', '$((-2147483648))');
  expect(counted.length).not.toBe(content.length);
  writeFileSync(join(base, loadAgentFile().name), counted);
  await expect(harness.connect(host, { shell: DASH })).rejects.toMatchObject({
    code: 'host_unsupported',
    message: expect.stringContaining('mksh'),
    hint: expect.stringContaining('"agent": false'),
  });
});

test('an account that may open too few files is told so', async () => {
  const host = harness.makeHost(DASH);
  const few = join(host.account.home, 'few-files');
  writeFileSync(few, `#!${DASH}\nulimit -n 8\nexec ${DASH} "$@"\n`, { mode: 0o755 });
  await expect(openAgent(harness.makeHost(few), options)).rejects.toMatchObject({
    code: 'agent_startup_failed',
    message: expect.stringContaining('a process of the account may open only 8 files (ulimit -n).'),
  });
});

test('a host that does not answer times out, and an abort ends the opening', async () => {
  const host = harness.makeHost(DASH);
  const silent = { exec: () => host.exec('exec cat') };
  await expect(openAgent(silent, { ...options, timeoutMs: 100 })).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  const reason = new Error('enough');
  const signal = AbortSignal.abort(reason);
  await expect(openAgent(silent, { ...options, signal })).rejects.toBe(reason);
});

test('the host’s ffmpeg is found', async () => {
  const path = findProgram('ffmpeg');
  const client = await harness.connect(harness.makeHost(DASH));
  const found = await client.ffmpeg();
  if (path === undefined) expect(found).toBeNull();
  else expect(found?.encoders.length).toBeGreaterThan(0);
});

test('checksums are those of cksum', () => {
  for (const text of ['', 'a', 'The quick brown fox\n', '\0\xff'.repeat(1000)]) {
    const content = Buffer.from(text, 'latin1');
    const [sum] = execFileSync('cksum', { input: content }).toString().split(' ');
    expect(cksum(content)).toBe(Number(sum));
  }
});

test('bash 3.2 of macOS finds the ends of substitutions', () => {
  const text = loadAgentFile()
    .content.toString()
    .replace(/(^|\s)#.*$/gm, '');
  const starts = [...text.matchAll(/\$\((?!\()/g)].map(match => match.index + 2);
  expect(starts.length).toBeGreaterThan(20);
  const open = starts
    .map(start => text.slice(start, endOfSubstitution(text, start)))
    .filter(body => body.split(/\bcase\b/).length !== body.split(/\besac\b/).length);
  expect(open).toEqual([]);
});

/** As bash before 4.0 finds it: by parentheses outside of quotes, those of case patterns too. */
function endOfSubstitution(text: string, start: number): number {
  let depth = 1;
  for (const { 0: token, index } of text
    .slice(start)
    .matchAll(/'[^']*'|"(?:\\.|[^"\\])*"|\\.|[()]/gs)) {
    if (token === '(') depth++;
    if (token === ')') depth--;
    if (depth === 0) return start + index;
  }
  return text.length;
}

test('shellcheck reports nothing', context => {
  const missing = missingPrograms('shellcheck');
  if (missing) skipTest(context, missing);
  const input = loadAgentFile().content;
  expect(execFileSync('shellcheck', ['-s', 'sh', '-'], { input }).toString()).toBe('');
});

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import type { BatchRequest } from '../../shared/jobs/payloads/batch.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { makeShBash, SHADOWS } from '../../test/harness/hosts/sh-is-bash.ts';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
import { LoginNode } from './login-node.ts';

const directory = makeTempDir('submissions');
afterAll(() => directory.remove());

/** Runs the job at once, as a batch system does later: with its environment, and both streams appended to files. */
const SBATCH = `#!/bin/sh
for last in "$@"; do
  case $last in --input=*) exec <"\${last#--input=}" ;; esac
done
setsid --wait $JOB_SHELL "$last/job" "$last" >>"$last/out" 2>>"$last/err"
echo 1
`;

const bin = join(directory.path, 'bin');
mkdirSync(bin);
writeFileSync(join(bin, 'sbatch'), SBATCH);
chmodSync(join(bin, 'sbatch'), 0o755);

let made = 0;

/** What became of a job of this request, on a login node whose account has these variables; `limit` is run there before. */
async function submit(
  request: BatchRequest,
  { env = {}, limit = ':' }: { env?: Record<string, string>; limit?: string } = {},
) {
  const home = join(directory.path, `home-${++made}`);
  mkdirSync(home);
  writeFileSync(join(home, '.bashrc'), env.BASHRC ?? '');
  const host = new LocalExec({
    home,
    shell: env.SHELL ?? '/bin/sh',
    env: { PATH: `${bin}:${process.env.PATH}`, JOB_SHELL: '/bin/sh', ...env },
  });
  const limited = {
    exec: (command: string, signal?: AbortSignal) => host.exec(`${limit}; ${command}`, signal),
  };
  const node = new LoginNode(limited, new AbortController().signal);
  const prepared = await node.prepare('job-1', request, 'slurm');
  const folder = join(home, '.windlass/batch/job-1');
  if ('failure' in prepared)
    return { failure: prepared.failure, left: readdirSync(join(home, '.windlass/batch')) };
  const { end } = await node.submit('job-1', request, 'slurm');
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  return { code: end?.code, out: read('out'), err: read('err') };
}

test('no name of a variable means anything to what runs the job', async () => {
  const env = { dir: 'mine', cwd: '/tmp', code: '9', UID: 'x', PATH: '/nowhere', IFS: 'o' };
  const words = '$dir $cwd $code $PATH $PWD';
  expect(await submit({ command: `echo "${words}"; exit 3`, env, cwd: '/usr' })).toEqual({
    code: 3,
    err: '',
    out: 'mine /tmp 9 /nowhere /usr\n',
  });
});

test.each(['~', "~/it's $HOME", "~//it's $HOME/"])('the folder %s is in the home', async cwd => {
  const limit = `mkdir -p "$HOME/it's \\$HOME"`;
  const { code, out } = await submit({ command: 'pwd; echo ~', cwd }, { limit });
  const [at = '', home = ''] = out?.split('\n') ?? [];
  expect(code).toBe(0);
  expect(at).toBe(join(home, cwd.slice(1)).replace(/\/$/, ''));
});

test('what the account exports comes to the job as it is', async () => {
  const env = { dir: 'a', base: 'b', cwd: 'c', shell: 'd', ended_by: 'e' };
  expect(await submit({ command: 'echo $dir $base $cwd $shell $ended_by' }, { env })).toEqual({
    code: 0,
    err: '',
    out: 'a b c d e\n',
  });
});

test('what the start-up files set does not come before what was asked for', async () => {
  const env = {
    SHELL: '/bin/bash',
    SSH_CLIENT: '127.0.0.1 1 2',
    BASHRC: 'export WORD=rc OTHER=rc',
  };
  const command = 'echo $WORD $OTHER $UID';
  expect(await submit({ command, env: { WORD: "o'wn", UID: 'x' } }, { env })).toEqual({
    code: 0,
    err: '',
    out: "o'wn rc x\n",
  });
});

test.each(['/bin/sh', '/bin/bash'])(
  'its variables stand in no arguments of a process, under %s',
  async SHELL => {
    // Tells what else is started before the command, for however short a time.
    const folder = join(directory.path, 'tells');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'env'), '#!/bin/sh\necho "env $*" >&2\nexec /usr/bin/env "$@"\n');
    chmodSync(join(folder, 'env'), 0o755);
    const env = { SHELL, PATH: `${folder}:${bin}:${process.env.PATH}` };
    const command = `for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$file; done 2>/dev/null; echo "$TOKEN"`;
    const { out, err } = await submit({ command, env: { TOKEN: 'hidden' } }, { env });
    expect(out?.match(/hidden/g)).toHaveLength(1);
    expect(err).toBe('');
  },
);

test.each<[string, string, Partial<BatchRequest>]>([
  ['sh', '', {}],
  ['bash', '', {}],
  ['bash', 'set -C', {}],
  ['sh', '', { script: '#!/bin/sh\ngrep -l hid[d]en -r "$HOME/.windlass"; echo "$TOKEN" | rev' }],
])(
  'once it runs, no file of it has its variables, under %s after %j, given %j',
  async (shell, BASHRC, given) => {
    const env = { SHELL: `/bin/${shell}`, SSH_CLIENT: '127.0.0.1 1 2', BASHRC };
    const command = 'grep -l hid[d]en -r "$HOME/.windlass"; echo "$TOKEN" | rev';
    const request = {
      ...(given.script ? given : { command }),
      env: { TOKEN: 'hidden', LC_ALL: 'C' },
    };
    expect(await submit(request, { env })).toEqual({ code: 0, out: 'neddih\n', err: '' });
  },
);

test('one that never runs has no variables left on the host', async () => {
  const home = join(directory.path, 'void');
  mkdirSync(home);
  const env = { PATH: `${bin}:${process.env.PATH}` };
  const host = new LocalExec({ home, shell: '/bin/sh', env });
  const node = new LoginNode(host, new AbortController().signal);
  await node.prepare('job-1', { command: 'true', env: { TOKEN: 'hidden' } }, 'slurm');
  const read = () => readFileSync(join(home, '.windlass/batch/job-1/request'), 'utf8');
  expect(read()).toContain('hidden');
  expect(await node.revoke('job-1')).toMatchObject({ start: 'revoked' });
  expect(read()).toBe('');
});

test('one that is started again runs nothing, and that is noted', async () => {
  const home = join(directory.path, 'again');
  mkdirSync(home);
  const env = { PATH: `${bin}:${process.env.PATH}`, JOB_SHELL: '/bin/sh' };
  const host = new LocalExec({ home, shell: '/bin/sh', env });
  const node = new LoginNode(host, new AbortController().signal);
  const folder = join(home, '.windlass/batch/job-1');
  const start = () => execFileSync('/bin/sh', [join(folder, 'job'), folder], { stdio: 'ignore' });
  await node.prepare('job-1', { command: 'echo ran' }, 'slurm');
  const first = await node.submit('job-1', { command: 'echo ran' }, 'slurm');
  expect(first).toMatchObject({ start: 'begun', end: { code: 0 } });
  expect(first.wasStartedAgain).toBeUndefined();
  start();
  expect(await node.look('job-1')).toEqual({ ...first, wasStartedAgain: true });
  expect(readFileSync(join(folder, 'out'), 'utf8')).toBe('ran\n');
  // One that was revoked has not begun.
  await node.prepare('other-1', { command: 'echo ran' }, 'slurm');
  await node.revoke('other-1');
  const other = join(home, '.windlass/batch/other-1');
  execFileSync('/bin/sh', [join(other, 'job'), other]);
  expect((await node.look('other-1')).wasStartedAgain).toBeUndefined();
});

test('a home that is unreachable for a moment is no end of the job', async () => {
  const home = join(directory.path, 'away');
  mkdirSync(home);
  const env = { PATH: `${bin}:${process.env.PATH}`, JOB_SHELL: '/bin/sh' };
  const node = new LoginNode(
    new LocalExec({ home, shell: '/bin/sh', env }),
    new AbortController().signal,
  );
  await node.prepare('job-1', { command: 'echo here' }, 'slurm');
  await node.submit('job-1', { command: 'echo here' }, 'slurm');
  const folder = join(home, '.windlass');
  renameSync(folder, `${folder}-away`);
  await expect(node.look('job-1')).rejects.toMatchObject({ code: 'remote_connection_failed' });
  expect(await node.remove([{ job: 'job' }])).toBeUndefined();
  renameSync(`${folder}-away`, folder);
  expect((await node.look('job-1')).end?.code).toBe(0);
  expect(await node.remove([{ job: 'job' }])).toEqual(['job']);
  expect(existsSync(join(folder, 'batch/job-1'))).toBe(false);
});

test('its standard input is what its options name', async () => {
  const file = join(directory.path, 'input');
  writeFileSync(file, 'the data\n');
  const options = [`--input=${file}`];
  expect(await submit({ command: 'cat', options })).toEqual({
    code: 0,
    err: '',
    out: 'the data\n',
  });
  expect(await submit({ command: 'cat' })).toEqual({ code: 0, out: '', err: '' });
});

test.each([
  ['#!/bin/sh\necho "$#"', '0\n'],
  ['#! /usr/bin/env sh\nbasename "$0"', 'script\n'],
  ['#!/bin/sh -e\nfalse\necho on', ''],
  ['echo none', 'none\n'],
])(
  '%j is run by what its first line names, without the right to be executed',
  async (script, out) => {
    expect(await submit({ script })).toMatchObject({ out });
  },
);

test('a request for which the disk has no room is not submitted, nor is a part of it', async () => {
  // What exceeds the limit is cut, as on a full disk.
  const limit = "trap '' XFSZ; ulimit -f 16";
  const script = `echo begun\n${'# a line of it\n'.repeat(2_000)}echo end\n`;
  expect(await submit({ script }, { limit })).toEqual({ failure: 'cannot_write', left: [] });
});

describe.each(['dash', 'bash --posix', 'busybox sh'])('under %s', shell => {
  const run = (lines: string[], env = {}) =>
    submit({ script: ['#!/bin/bash', ...lines].join('\n') }, { env: { JOB_SHELL: shell, ...env } });
  const until = (what: string) => `until [ "$seen" = ${what} ]; do sleep 0.1; done`;
  // What is sent to all is sent when all are there.
  const idle = 'until pgrep -P $PPID -x sleep >/dev/null; do sleep 0.1; done';

  test.each(['USR1', 'TERM', 'INT'])(
    'SIG%s for the script alone reaches it, as often as it is sent',
    async signal => {
      const lines = [
        ...[`trap 'seen=x$seen' ${signal}`, idle],
        ...[`kill -${signal} $PPID`, until('x')],
        ...[`kill -${signal} $PPID`, until('xx')],
        ...['sleep 0.5', 'echo $seen', 'exit 3'],
      ];
      expect(await run(lines)).toEqual({ code: 3, out: 'xx\n', err: '' });
    },
  );

  test.each(['USR1', 'TERM', 'INT'])(
    'SIG%s for all processes of the job reaches it once',
    async signal => {
      const lines = [
        ...[`trap 'seen=x$seen' ${signal}`, idle],
        ...[`kill -${signal} 0`, until('x')],
        ...['sleep 0.7', 'echo $seen', 'exit 4'],
      ];
      expect(await run(lines)).toEqual({ code: 4, out: 'x\n', err: '' });
    },
  );

  test('SIGTERM for all processes is noted where the script has ended before the last gets it', async () => {
    const late = 'while kill -0 $0; do :; done 2>/dev/null; sleep 0.1; kill -TERM $1';
    await run([`setsid sh -c '${late}' $$ $PPID &`]);
    const folder = join(directory.path, `home-${made}`, '.windlass/batch/job-1');
    expect(readdirSync(folder)).toContain('end.0.0.0.t');
  });

  test('a script that a signal ends leaves its status, and nothing else', async () => {
    expect(await run([idle, 'kill -TERM 0; sleep 60'])).toEqual({ code: 143, out: '', err: '' });
    expect(await run(['kill -KILL $$'])).toEqual({ code: 137, out: '', err: '' });
  });
});

describe.each([true, false])('with Perl on the node: %s', hasPerl => {
  const folder = join(directory.path, `perl-${hasPerl}`);
  mkdirSync(folder);
  const PATH = `${folder}:${bin}:${process.env.PATH}`;
  if (!hasPerl) writeFileSync(join(folder, 'perl'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  const run = (lines: string[], { env = {}, limit = ':' } = {}) =>
    submit({ script: ['#!/bin/sh', ...lines].join('\n') }, { env: { PATH, ...env }, limit });
  const record = () =>
    readdirSync(join(directory.path, `home-${made}`, '.windlass/batch/job-1'))
      .filter(name => name.startsWith('end.'))
      .join();

  test('what it prints is whole, also where a program opens its streams anew', async () => {
    const lines = [
      'echo one; echo first >&2',
      'echo two | tee /dev/stderr',
      'echo second >/dev/stderr; echo three >/dev/stdout',
      '/bin/sh -c "echo third >&2" 2>/dev/stderr',
      'echo four',
    ];
    const out = 'one\ntwo\nthree\nfour\n';
    const err = 'first\ntwo\nsecond\nthird\n';
    expect(await run(lines)).toEqual({ code: 0, out, err });
    expect(record()).toBe(`end.0.${out.length}.${err.length}`);
  });

  test('its bytes are as they were, however many, whatever PERL_UNICODE says', async () => {
    const lines = ['head -c 3000000 /dev/zero | tr "\\0" "\\377"; printf "\\344" >&2'];
    const { out, err } = await run(lines, { env: { PERL_UNICODE: 'SDA' } });
    expect([out?.length, err]).toEqual([3_000_000, '\ufffd']);
    expect(record()).toBe('end.0.3000000.1');
  });

  test('a child that goes on, with the streams open, does not keep it', async () => {
    const { code, out } = await run(['sleep 600 & echo $!; exit 3']);
    process.kill(Number(out), 'SIGKILL');
    expect(code).toBe(3);
  });

  test('what the disk has no room for is counted, and is not left out in the middle', async () => {
    const lines = ['head -c 100000 /dev/zero | tr "\\0" x; echo on >&2; echo more; exit 3'];
    const { code, out, err } = await run(lines, { limit: 'ulimit -f 64' });
    expect([code, err]).toEqual([3, 'on\n']);
    expect(out).toMatch(/^x+$/);
    const printed = hasPerl ? 100_005 : (out?.length ?? 0) + 1;
    expect(record()).toBe(`end.3.${printed}.3`);
  });
});

describeUnless(missingRoot(), 'where its account may have two processes', () => {
  test('a job without room for its command ends with the status of a shell that cannot run it', async () => {
    const shell = join(bin, 'few');
    // Ended at last, because a job that waits for ever would stay.
    const few = 'timeout -s KILL 60 setpriv --reuid=54322 --clear-groups prlimit --nproc=2';
    const lines = ['#!/bin/sh', 'chown -R 54322 "$HOME/.windlass"', `exec ${few} /bin/sh "$@"`];
    writeFileSync(shell, `${lines.join('\n')}\n`, { mode: 0o755 });
    expect(await submit({ command: 'echo ran' }, { env: { JOB_SHELL: shell } })).toEqual({
      code: 126,
      out: '',
      err: expect.stringMatching(/^windlass: .*cannot start the command: .+\n$/),
    });
  }, 90_000);
});

test('without Perl on the node a job runs to its end, and no file of it has its variables', async () => {
  const folder = join(directory.path, 'few');
  mkdirSync(folder);
  for (const name of ['mv', 'wc', 'env', 'mkdir', 'rm', 'touch', 'find', 'setsid', 'grep'])
    symlinkSync(findProgram(name) ?? name, join(folder, name));
  const env = { PATH: `${bin}:${folder}`, JOB_SHELL: '/bin/sh' };
  const command = 'grep -l hid[d]en -r "$HOME/.windlass"; echo out; exit 5';
  const request = { command, env: { TOKEN: 'hidden' } };
  expect(await submit(request, { env, limit: 'PATH=$PATH' })).toMatchObject({
    code: 5,
    out: 'out\n',
  });
});

describe.each([true, false])('where /bin/sh is bash, with Perl on the node: %s', hasPerl => {
  const folder = join(directory.path, `shadows-${hasPerl}`);
  const programs = join(folder, 'bin');
  const sh = join(programs, 'sh');
  mkdirSync(programs, { recursive: true });
  symlinkSync(findProgram('bash') ?? '/bin/bash', sh);
  const offer = (name: string, lines: string[]) =>
    writeFileSync(join(programs, name), `#!/bin/bash -p\n${lines.join('\n')}\n`, { mode: 0o755 });
  offer('sbatch', [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: of the shell
    'dir=${@: -1}',
    `sed -i 's|"/bin/sh"|"${sh}"|' "$dir/job"`,
    `setsid --wait ${sh} "$dir/job" "$dir" >>"$dir/out" 2>>"$dir/err"`,
    'echo 1',
  ]);
  offer('squeue', ["echo '1|COMPLETED|None|n1|windlass-job-1|'"]);
  if (!hasPerl) offer('perl', ['exit 1']);
  const functions = {
    ...SHADOWS,
    'BASH_FUNC_squeue%%': '() { return 0; }',
    'BASH_FUNC_sbatch%%': '() { return 1; }',
    'BASH_FUNC_id%%': '() { builtin echo nobody; }',
    'BASH_FUNC_cd%%': '() { builtin echo went; }',
    'BASH_FUNC_perl%%': '() { builtin echo own; }',
    'BASH_FUNC_run%%': '() { builtin echo "run $1"; }',
  };
  const env = { PATH: `${programs}:${process.env.PATH}`, ...functions };
  const host = makeShBash(new LocalExec({ home: folder, shell: '/bin/bash', env }));
  const node = new LoginNode(host, new AbortController().signal);
  const out = '     1\ta\n<b>\nrun c\nwent\n';
  const read = (name: string) => readFileSync(join(folder, '.windlass/batch', name), 'utf8');

  test('the functions of the account are for its jobs alone', async () => {
    const script = '#!/bin/bash\nbuiltin echo a | cat; printf b; run c; cd; exit 3\n';
    await node.prepare('job-1', { script, cwd: '/usr' }, 'slurm');
    const { end, answer } = await node.submit('job-1', { script, cwd: '/usr' }, 'slurm');
    expect([answer, read('job-1/out'), read('job-1/err')]).toEqual([0, out, '']);
    expect(end).toMatchObject({ code: 3, stdout: out.length });
    const asked = { ids: [], tokens: ['windlass-job-1'], ended: [] };
    const { statuses } = await node.poll(['job-1'], 'slurm', asked);
    expect(statuses?.leader('windlass-job-1')?.id).toBe('1');
    const request = { command: 'builtin echo a | cat' };
    await node.prepare('other-1', request, 'slurm');
    expect(await node.submit('other-1', request, 'slurm')).toMatchObject({ end: { code: 0 } });
    expect(read('other-1/out')).toBe('     1\ta\n');
  });
});

test('a home that comes back between two looks does not make a job gone, nor its files removed', async () => {
  const home = join(directory.path, 'flapping');
  const base = join(home, '.windlass/batch');
  mkdirSync(join(base, 'job-1'), { recursive: true });
  const script = readFileSync(new URL('sh/login-node.sh', import.meta.url), 'utf8');
  // The first of its conditions is of a home that is unreachable: nothing is found.
  const flap = '[() { unset -f "["; test "$1" = !; }';
  const run = (call: string) =>
    execFileSync('bash', ['-c', `${script}\n${flap}\n${call}`], {
      env: { ...process.env, HOME: home },
      encoding: 'utf8',
    });
  expect(run('look job-1')).toBe('');
  expect(run('remove job; say_home')).toBe('home\n');
  expect(existsSync(join(base, 'job-1'))).toBe(true);
});

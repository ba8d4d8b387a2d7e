import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import {
  collect,
  FAMILY,
  filesOf,
  follow,
  processesOf,
  readProc,
  runDirectory,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { loadAgentFile } from './agent-file.ts';

const MiB = 1024 * 1024;
const harness = useAgentHarness();

const ALL = [...FAMILY, 'tcsh', 'csh', 'fish'];
const OPTIONAL = ['busybox', 'ksh', 'zsh', 'tcsh', 'csh', 'fish'] as const;

for (const name of ALL) {
  const shell = findProgram(name) ?? '';
  const needed = OPTIONAL.filter(program => program === name);
  describeUnless(missingPrograms(...needed), `an account whose shell is ${name}`, () => {
    test('runs commands once, reports exact results and removes all files', async () => {
      const host = harness.makeHost(shell);
      const client = await harness.connect(host);
      const { home } = host.account;
      expect(client.hello).toMatchObject({ version: 1, home, shell: host.account.shell });
      expect(client.hello.cores).toBeGreaterThan(0);
      expect(client.hello.freeBytes).toBeGreaterThan(MiB);

      const ok = await harness.run(client, 'true');
      expect(ok.types).toEqual(['running', 'ended']);
      const end = { type: 'ended', code: 0, stdoutBytes: 0, stderrBytes: 0, diskFull: false };
      expect(ok.last).toEqual(end);
      const quoted = await harness.run(client, "echo it\\'s; echo 'two $x `y` \"z\" \\ ü'; exit 3");
      expect(quoted.stdout.toString()).toBe('it\'s\ntwo $x `y` "z" \\ ü\n');
      expect(quoted.last).toMatchObject({ code: 3 });
      const killed = await harness.run(
        client,
        name === 'fish' ? 'kill -9 $fish_pid' : 'kill -9 $$',
      );
      expect(killed.last).toMatchObject({ code: 137, stderrBytes: 0 });

      const [id, token] = [harness.newName(), harness.newName()];
      const script = `echo x >>ledger\necho "it's" >&2\nprintf 'a\\000b\\377\\n\\n'\nexit 7\n# ${'x'.repeat(300_000)}`;
      for (const _ of ['first', 'repeated']) {
        const result = await collect({ client, id, events: client.run({ id, token, script }) });
        expect(result.stdout).toEqual(Buffer.from('a\0b\xff\n\n', 'latin1'));
        expect(result.stderr.toString()).toBe("it's\n");
        expect(result.last).toEqual({ ...end, code: 7, stdoutBytes: 6, stderrBytes: 5 });
      }
      const other = client.run({ id, token: harness.newName(), script });
      expect((await collect({ client, id, events: other })).types).toEqual(['taken']);
      expect(readFileSync(join(home, 'ledger'), 'utf8')).toBe('x\n');
      expect((await follow(client, 'unknown')).types).toEqual(['absent']);

      for (const run of [ok.id, quoted.id, killed.id, id]) await client.forget(run);
      await harness.close();
      await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
      expect(filesOf(host)).toEqual([expect.stringMatching(/^agent-[0-9a-f]{16}\.sh$/)]);
    });

    test('gives a command the environment, files and signals of a plain exec', async () => {
      const clashing = {
        name: 'mine',
        dir: 'mine',
        text: 'mine',
        code: 'mine',
        id: 'mine',
        base: 'mine',
      };
      const odd = { ...clashing, ODD: 'a\nb "c" \'d\' $e `f` \\', PWD: '/nowhere' };
      const host = harness.makeHost(shell, odd);
      const client = await harness.connect(host);
      const probe =
        'pwd; umask; ls -l /proc/self/fd | wc -l; ulimit -n; cat /proc/self/status | grep -E "^Sig(Ign|Blk)"; env -0 | sort -z | tr "\\0" "@"';
      const plain = await host.exec(probe);
      plain.stdin.end();
      let expected = '';
      for await (const chunk of plain.stdout) expected += chunk;
      const result = await harness.run(client, probe);
      const mark = /@WINDLASS_RUN=([^@]*)/;
      const last = /@_=[^@]*/; // the last program that a shell started; ksh adds a PID
      const actual = result.stdout.toString();
      // glibc's internal signals 32 and 33, which ksh and fish ignore only sometimes.
      const own = /(?<=SigIgn:\t0{7})18/;
      const clean = (text: string) => text.replace(mark, '').replace(last, '').replace(own, '00');
      expect(clean(actual)).toBe(clean(expected));
      expect(mark.exec(actual)?.[1]).toBe(runDirectory(host, result.id));
      const input = await harness.run(client, 'cat; readlink /proc/self/fd/0');
      expect(input.stdout.toString()).toBe('/dev/null\n');
    });
  });
}

for (const name of FAMILY) {
  const shell = findProgram(name) ?? '';
  const needed = OPTIONAL.filter(program => program === name);
  describeUnless(missingPrograms(...needed), `an agent run by ${name}`, () => {
    test('spools large binary output exactly', async () => {
      const host = harness.makeHost(shell);
      const client = await harness.connect(host);
      const noise = 'openssl enc -aes-128-ctr -K 00 -iv 00 2>/dev/null';
      const result = await harness.run(
        client,
        `head -c ${20 * MiB} /dev/zero | ${noise} | tee copy; echo end >&2`,
      );
      const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
      expect(result.stdout.length).toBe(20 * MiB);
      expect(hash(result.stdout)).toBe(hash(readFileSync(join(host.account.home, 'copy'))));
      expect(result.stderr.toString()).toBe('end\n');
      // Acknowledged segments are deleted.
      const left = readdirSync(runDirectory(host, result.id)).filter(file => file.startsWith('o.'));
      expect(left.length).toBeLessThan(8);
    });

    test('a run survives kill -9 of its serve, and another client follows it from the middle', async () => {
      const host = harness.makeHost(shell);
      const first = await harness.connect(host);
      const id = harness.newName();
      const script = 'seq 300000; while ! test -e go; do sleep 0.02; done; echo last; exit 5';
      const read = async () => {
        for await (const event of first.run({ id, token: harness.newName(), script })) {
          if (event.type === 'output' && event.offset === 0) {
            process.kill(host.pids.at(-1) ?? 0, 'SIGKILL');
          }
        }
      };
      await expect(read()).rejects.toMatchObject({ code: 'remote_connection_failed' });
      await first.closed;
      const second = await harness.connect(host);
      const rest = follow(second, id, { stdout: 12_345, stderr: 0 });
      writeFileSync(join(host.account.home, 'go'), '');
      const result = await rest;
      const whole = `${Array.from({ length: 300_000 }, (_, i) => `${i + 1}\n`).join('')}last\n`;
      expect(result.stdout.toString()).toBe(whole.slice(12_345));
      expect(result.last).toMatchObject({ type: 'ended', code: 5, stdoutBytes: whole.length });
      await second.forget(id);
      await harness.close();
      await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
      expect(filesOf(host).filter(file => file.includes('/'))).toEqual([]);
    });

    test('starts an id once when two serves race for it', async () => {
      const host = harness.makeHost(shell);
      const clients = [await harness.connect(host), await harness.connect(host)];
      for (let round = 0; round < 20; round++) {
        const id = harness.newName();
        const outcomes = await Promise.all(
          clients.map(client => {
            const run = { id, token: harness.newName(), command: `echo ${id} >>ledger` };
            return collect({ client, id, events: client.run(run) });
          }),
        );
        expect(outcomes.map(({ last }) => last?.type).sort()).toEqual(['ended', 'taken']);
      }
      const ledger = readFileSync(join(host.account.home, 'ledger'), 'utf8').trim().split('\n');
      expect(ledger.length).toBe(20);
      expect(new Set(ledger).size).toBe(20);
    });

    test('stops children that ignore SIGTERM or have left the session, and keeps the output', async () => {
      const host = harness.makeHost(shell);
      const client = await harness.connect(host);
      const id = harness.newName();
      const script = [
        "sh -c 'trap : TERM; echo stubborn; touch a; while :; do sleep 1; done' &",
        "setsid sh -c 'trap : TERM; echo gone; touch b; sleep 300; sleep 300' &",
        "env -i PATH=$PATH sh -c 'echo unmarked; touch c; sleep 300' &",
        // These two are found only as descendants; the parent of the second exits first.
        "setsid env -i PATH=$PATH sh -c 'echo strange; touch d; sleep 300; exit' &",
        'env -i PATH=$PATH setsid sh -c \'setsid sh -c "trap : TERM; touch e; sleep 300; sleep 300"; exit\' &',
        'wait',
      ].join('\n');
      const events = client.run({ id, token: harness.newName(), script });
      const outcome = collect({ client, id, events });
      const started = () =>
        ['a', 'b', 'c', 'd', 'e'].every(file => existsSync(join(host.account.home, file)));
      await waitFor(started, { what: 'five children' });
      expect(await client.stop(id)).toEqual({ result: 'killed' });
      const result = await outcome;
      expect(result.last).toMatchObject({ type: 'ended', code: 143 });
      const lines = result.stdout.toString().trim().split('\n');
      expect(lines.sort()).toEqual(['gone', 'strange', 'stubborn', 'unmarked']);
      expect(processesOf(host).filter(line => /sleep (1|300)\b/.test(line))).toEqual([]);
      // A later stop reports too that the run did not end by itself.
      expect(await client.stop(id)).toEqual({ result: 'killed' });
    });

    test('blocks the command at the spool limit, and loses nothing', async () => {
      const host = harness.makeHost(shell);
      const client = await harness.connect(host, { spoolLimitBytes: 2 * MiB });
      const id = harness.newName();
      const script = `head -c ${12 * MiB} /dev/zero; touch done`;
      const waits = () =>
        processesOf(host).some(line =>
          // ksh's pipes are sockets.
          /pipe_write|sock_alloc_send/.test(readProc(line.split(' ')[0] ?? '', 'wchan')),
        );
      let read = 0;
      let stalled = false;
      for await (const event of client.run({ id, token: harness.newName(), script })) {
        if (event.type !== 'output') continue;
        read += event.bytes.length;
        if (!stalled && read < 2 * MiB) continue;
        if (!stalled) {
          await waitFor(waits, { what: 'a command that waits' });
          expect(existsSync(join(host.account.home, 'done'))).toBe(false);
          stalled = true;
        }
        client.ack(id, read, 0);
      }
      expect(read).toBe(12 * MiB);
      expect(existsSync(join(host.account.home, 'done'))).toBe(true);
    });

    test('ends with its standard input, and its runs do not', async () => {
      const host = harness.makeHost(shell);
      const client = await harness.connect(host);
      const id = harness.newName();
      const events = client.run({ id, token: harness.newName(), command: 'sleep 300' });
      expect(await events.next()).toMatchObject({ value: { type: 'running' } });
      await harness.close();
      const count = (what: RegExp) => filesOf(host).filter(file => what.test(file)).length;
      const serving = () => processesOf(host).some(line => /agent-\S+ (serve|child) /.test(line));
      await waitFor(() => !serving(), { what: 'the end of the serve' });
      // Prepared attempts remove their files.
      await waitFor(() => count(/^serve\//) === 0 && count(/^runs\/[^/]*$/) === 1, {
        what: 'nothing of the serve and one run to be left',
      });
      const next = await harness.connect(host);
      const outcome = follow(next, id);
      await next.stop(id);
      expect((await outcome).last).toMatchObject({ type: 'ended', code: 143 });
    });
  });
}

test('what is printed after a pause is sent at once where there is Perl, and not with the next tick', async () => {
  const host = harness.makeHost(findProgram('dash') ?? '/bin/sh');
  const { name, content } = loadAgentFile();
  // The next tick is in five minutes.
  const patient = content.toString().replace('$steps = 10 }', '$steps = 60_000 }');
  expect(patient).not.toBe(content.toString());
  mkdirSync(join(host.account.home, '.windlass'));
  writeFileSync(join(host.account.home, '.windlass', name), patient);
  const client = await harness.connect(host, { shell: host.account.shell });
  const watches = () => processesOf(host).some(line => line.includes('perl -e my'));
  await waitFor(watches, { what: 'Perl to watch' });
  const id = harness.newName();
  const command = 'for n in 1 2 3; do sleep 0.2; echo $n; done; sleep 300';
  let printed = '';
  for await (const event of client.run({ id, token: harness.newName(), command })) {
    if (event.type !== 'output') continue;
    printed += event.bytes;
    if (printed.endsWith('3\n')) break;
  }
  expect(printed).toBe('1\n2\n3\n');
  expect(await client.stop(id)).toEqual({ result: 'killed' });
});

test('while runs follow one another more attempts are ready, and after a pause one and nothing of the others', async () => {
  const host = harness.makeHost(findProgram('dash') ?? '/bin/sh');
  const client = await harness.connect(host);
  const ready = () => filesOf(host).filter(file => /^runs\/.*\/ready$/.test(file)).length;
  const idle = processesOf(host).length;
  const ids: string[] = [];
  for (let run = 0; run < 6; run++) ids.push((await harness.run(client, 'true')).id);
  await client.forgetAll(ids);
  await waitFor(() => ready() > 1, { what: 'more than one attempt', intervalMs: 5 });
  const isAlone = async () => {
    // On a busy host an attempt may be ready only later, and is then given up with a ping.
    await client.ping();
    return ready() === 1;
  };
  await waitFor(isAlone, { what: 'one attempt' });
  await waitFor(() => processesOf(host).length <= Math.max(idle, 6), { what: 'an idle agent' });
  expect((await harness.run(client, 'echo still')).stdout.toString()).toBe('still\n');
});

import { mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { addHost, type Job, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStarted } from '../harness/stacks/use-stack.ts';

interface Result {
  output: string;
  errors: string;
  returncode: number;
  job: string;
}

describeStack(missingPrograms('sshd'), 'how a command is run', form => {
  const sshd = useStarted(() => startTestSshd());
  const { client } = useStack(form);
  beforeAll(() => addHost(client, sshd));

  const launch = (body: object) =>
    client.fetch('/api/remotes/launch', { method: 'POST', body: JSON.stringify(body) });
  const run = async (body: object): Promise<Result> => {
    const answer = await launch(body);
    expect(answer.status).toBe(200);
    return (await answer.json()) as Result;
  };

  for (const agent of [true, false]) {
    const how = agent ? 'with an agent' : 'without one';
    test(`in its folder, with its variables and its input, byte for byte, ${how}`, async () => {
      const sid = await openSession(client, sshd, { agent });
      const folder = join(sshd.home, `it's "a" $folder\nof ${how} \\ !`);
      mkdirSync(folder, { recursive: true });
      const env = { WINDLASS_A: `it's $HOME "x"\n\\ ! end`, LANG: 'C', _x1: '' };
      const stdin = `first 'line'\n$(id) \`id\` \\n ü 😀 !\nno line break at the end`;
      const command = `pwd; printf '%s|%s|%s\\n' "$WINDLASS_A" "$LANG" "\${_x1-unset}"; cat; exit 7`;
      const whole = await run({ sid, command, cwd: folder, env, stdin });
      expect(whole.output).toBe(`${folder}\n${env.WINDLASS_A}|C|\n${stdin}`);
      expect([whole.errors, whole.returncode]).toEqual(['', 7]);
      mkdirSync(join(sshd.home, 'below'), { recursive: true });
      expect((await run({ sid, command: 'pwd', cwd: 'below' })).output).toBe(
        `${join(sshd.home, 'below')}\n`,
      );
      for (const [cwd, found] of Object.entries({
        '~': '',
        '~/below': 'below',
        '~/./below/': 'below',
      }))
        expect((await run({ sid, command: 'pwd', cwd })).output).toBe(
          `${join(sshd.home, found)}\n`,
        );
      // To `cd` some of these names mean something else.
      for (const cwd of ['-', '+1', '-P', '~tester']) {
        mkdirSync(join(sshd.home, cwd), { recursive: true });
        expect(await run({ sid, command: 'pwd', cwd })).toMatchObject({
          output: `${join(sshd.home, cwd)}\n`,
          errors: '',
        });
      }
      // More than one argument of execve may hold.
      const long = `${'a line of it\n'.repeat(40_000)}end`;
      expect((await run({ sid, command: 'cat | cksum; cat', stdin: long })).output).toBe(
        (await run({ sid, command: `printf '%s' "$(cat)" | cksum`, stdin: long })).output,
      );
      // Each byte of it takes six in the request.
      const most = '\u0001'.repeat(1 << 20);
      expect(
        await run({ sid, command: `tr -d '\\001' | wc -c; echo end`, stdin: most }),
      ).toMatchObject({
        output: '0\nend\n',
      });
      // A command that reads nothing of it is no error.
      expect(await run({ sid, command: 'true', stdin: long })).toMatchObject({
        output: '',
        errors: '',
        returncode: 0,
      });
    });

    test(`its variables and its input stand in no arguments of a process, ${how}`, async () => {
      const sid = await openSession(client, sshd, { agent, env: { SEALED: 'hidden 1' } });
      const { output, returncode } = await run({
        sid,
        command: `cat; for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$file; done 2>/dev/null; echo "$SEALED, $OWN"`,
        env: { OWN: 'hidden 2' },
        stdin: 'hidden 3',
      });
      expect(returncode).toBe(0);
      expect(output).toMatch(/^hidden 3/);
      expect(output).toMatch(/hidden 1, hidden 2\n$/);
      expect(output.match(/hidden \d/g)).toHaveLength(3);
    });

    test(`a folder that cannot be entered is an error, and nothing ran, ${how}`, async () => {
      const sid = await openSession(client, sshd, { agent });
      writeFileSync(join(sshd.home, 'a-file'), '');
      for (const cwd of ['/no such folder', join(sshd.home, 'a-file')]) {
        const problem = await expectProblem(
          await launch({ sid, command: `echo ran >${sshd.home}/ran`, cwd }),
          400,
          'cwd_not_found',
        );
        expect(problem.detail).toContain(cwd);
      }
      expect((await run({ sid, command: 'test -e ran; echo $?' })).output).toBe('1\n');
      // A command's own exit status and words are no such error.
      const own = await run({ sid, command: 'echo windlass: x: cannot >&2; exit 113', cwd: '/' });
      expect(own.returncode).toBe(113);
    });

    test(`a time-out of its own ends it, ${how}`, async () => {
      const sid = await openSession(client, sshd, { agent });
      const problem = await expectProblem(
        await launch({ sid, command: 'echo begun; sleep 600', timeout: 2 }),
        400,
        'time_limit',
      );
      expect(problem.detail).toContain('2 s');
      expect((await run({ sid, command: 'echo in time', timeout: 600 })).output).toBe('in time\n');
    });
  }

  test.each([{ startup: 'once' }, { startup: 'each' }, { agent: false }])(
    'a signal that ends it is told by the exit status alone, with %o',
    async manner => {
      const sid = await openSession(client, sshd, manner);
      const ways = { cwd: '/', env: { OWN: 'x' }, stdin: 'hidden\n' };
      for (const signal of ['SEGV', 'KILL', 'TERM'] as const)
        for (const [field, value] of Object.entries(ways)) {
          const { errors, returncode } = await run({
            sid,
            command: `kill -${signal} $$`,
            [field]: value,
          });
          expect([field, errors, returncode]).toEqual([
            field,
            '',
            128 + constants.signals[`SIG${signal}`],
          ]);
        }
    },
  );

  test.each(['once', 'each'])('nor do they stay in files of the run, with "%s"', async startup => {
    const sid = await openSession(client, sshd, { startup });
    const command = 'cat "$WINDLASS_RUN/cmd" "$WINDLASS_RUN/script"';
    expect(await run({ sid, command, env: { OWN: 'hidden' }, stdin: 'hidden' })).toMatchObject({
      output: '',
      errors: '',
      returncode: 0,
    });
  });

  test('what is no folder, variable, input or time-out is named', async () => {
    const sid = await openSession(client, sshd);
    const wrong: Record<string, object> = {
      cwd: { cwd: '' },
      env: { env: { 'A-B': 'x' } },
      'env.A': { env: { A: 'x\0y' } },
      stdin: { stdin: 'x\0y' },
      timeout: { timeout: 0 },
    };
    for (const [field, more] of Object.entries(wrong)) {
      const problem = await expectProblem(
        await launch({ sid, command: 'true', ...more }),
        400,
        'invalid_input',
      );
      expect(JSON.stringify(problem)).toContain(field);
    }
  });

  test('a retry runs it the same way', async () => {
    const sid = await openSession(client, sshd);
    const { job } = await run({ sid, command: 'echo $A; cat', env: { A: 'x' }, stdin: 'in' });
    const { id } = await client.post<Job>(`/api/jobs/${job}/retry`, {});
    expect((await waitForEnd(client, id)).state).toBe('succeeded');
    expect(String(await readOutput(client, id))).toBe('x\nin');
  });
});

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { endWithThisProcess } from '../../servers/processes.ts';
import { makeAccount } from '../harness/accounts.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { startTestSshd } from '../harness/sshd.ts';
import { readOwnEnvironment, startStack } from '../harness/stack.ts';
import { makeTempDir } from '../harness/temp-dir.ts';
import { useStarted } from '../harness/use-stack.ts';

const root = join(import.meta.dirname, '../..');

/** The blocks of the README that are marked `sh`, with the places and the account of this test. */
function readCommands({ url, port, account }: { url: string; port: number; account: string }) {
  const blocks = readFileSync(join(root, 'README.md'), 'utf8').matchAll(
    /^```sh\n([\s\S]*?)^```$/gm,
  );
  const replace = (text: string, printed: string, ours: string) => {
    expect(text).toContain(printed);
    return text.replaceAll(printed, ours);
  };
  let text = [...blocks].map(([, block = '']) => block).join('');
  text = replace(text, 'http://127.0.0.1:8080', url);
  text = replace(text, '--address 127.0.0.1', `--address 127.0.0.1 --port ${port}`);
  return replace(text, 'windlass run lab ', `windlass run lab --user ${account} `);
}

describeUnless(
  missingRoot() ?? missingPrograms('sshd', 'ffmpeg', 'script'),
  'the first commands of the README',
  () => {
    const stack = useStarted(() => startStack());
    const account = useStarted(async () => {
      const made = await makeAccount();
      return { ...made, stop: () => made.remove() };
    });
    const sshd = useStarted(() => startTestSshd({ account }));
    const folder = useStarted(async () => {
      const { path, remove } = makeTempDir('first');
      return { path, stop: async () => remove() };
    });
    let ran: { code: number | null; shown: string };

    /** Runs them in one bash on a terminal, and answers what is asked there. */
    async function runOnTerminal(text: string, answers: [asked: string, answer: string][]) {
      const file = join(folder.path, 'commands');
      writeFileSync(file, text);
      const home = join(folder.path, 'home');
      mkdirSync(home);
      // The file is not the terminal, so that what is not asked for reads nothing.
      const child = spawn('script', ['-qefc', `bash -euxo pipefail ${file}`, '/dev/null'], {
        ...{ cwd: folder.path, env: { ...readOwnEnvironment(), HOME: home }, stdio: 'pipe' },
      });
      endWithThisProcess(child);
      let shown = '';
      const left = [...answers];
      child.stdout.setEncoding('utf8').on('data', (piece: string) => {
        shown += piece;
        const [next] = left;
        if (!next || !shown.endsWith(next[0])) return;
        left.shift();
        child.stdin.write(`${next[1]}\n`);
      });
      return new Promise<{ code: number | null; shown: string }>(resolve =>
        child.once('close', code => resolve({ code, shown: shown.replaceAll('\r', '') })),
      );
    }

    beforeAll(async () => {
      symlinkSync(join(root, 'bin'), join(folder.path, 'bin'));
      const text = readCommands({
        ...{ url: stack.url, port: sshd.port, account: account.username },
      });
      const admin = `Password of ${stack.username}: `;
      ran = await runOnTerminal(text, [
        [admin, stack.password],
        [admin, stack.password],
        [`Password of ${account.username} on lab (none: just Enter): `, account.password],
      ]);
    }, 120_000);

    test('all succeed, and passwords are not shown', () => {
      expect(ran.code, ran.shown).toBe(0);
      expect(ran.shown).not.toContain(stack.password);
      expect(ran.shown).not.toContain(account.password);
    });

    test('the first command prints its steps, and another one is followed to its end', () => {
      expect(ran.shown).toContain('\nstep 1\nstep 2\nstep 3\n');
      expect(ran.shown).toContain('\n1\n2\n3\n4\n5\n');
      expect(ran.shown).toContain('it ended with 3\n');
      expect(ran.shown).toMatch(/succeeded +command +lab +\d+s +seq 5; exit 3/);
    });

    test('the video and the rows are there', () => {
      expect(statSync(join(folder.path, 'video.mp4')).size).toBeGreaterThan(1_000);
      expect(ran.shown).toMatch(/second +sky +temperature\n\d+ +rain +(20|19\.99)/);
    });
  },
);

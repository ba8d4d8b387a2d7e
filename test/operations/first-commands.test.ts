import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { endWithThisProcess } from '../../servers/processes.ts';
import { drawTerminal } from '../harness/browser/terminal-picture.ts';
import { makeAccount } from '../harness/clients/accounts.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { readOwnEnvironment, startStack } from '../harness/stacks/stack.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';

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
      const child = spawn('script', ['-qefc', `bash -euvo pipefail ${file}`, '/dev/null'], {
        cwd: folder.path,
        env: { ...readOwnEnvironment(), HOME: home },
        stdio: 'pipe',
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
        url: stack.url,
        port: sshd.port,
        account: account.username,
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

    test('the picture of the README shows what they show', async () => {
      const usual = (text: string) =>
        text
          .replaceAll(stack.url, 'http://127.0.0.1:8080')
          .replaceAll(` --port ${sshd.port}`, '')
          .replaceAll(`127.0.0.1:${sshd.port}`, '127.0.0.1:22')
          .replaceAll(` --user ${account.username}`, '')
          .replaceAll(account.username, 'ada')
          .replaceAll(join(folder.path, 'home'), '/home/ada')
          .replaceAll(/SHA256:\S+/g, 'SHA256:j/oB1OGtQDz3NEnV8I88F6LM7PKfHBYQ0RWUE7I0tW4')
          .replaceAll(/\b01[0-9a-z]{24}\b/g, id => `01m83t5x5mj81w298a47w5hxw${known(id)}`)
          .replaceAll(/\b\d+[sm] {2,3}(?=\S)/g, '2s   ');
      const ids: string[] = [];
      const known = (id: string) => {
        if (!ids.includes(id)) ids.push(id);
        return ids.indexOf(id);
      };
      const all = usual(ran.shown)
        .split('\n')
        .filter(line => line !== '');
      const end = all.findIndex(line => line.startsWith("windlass run lab -- 'mkdir"));
      expect(end).toBeGreaterThan(10);
      const lines = all.slice(1, end);
      const commands = new Set(lines.filter(line => /^(windlass|JOB=)/.test(line)));
      const title = 'The first commands of windlass: a login, a host, a command and a list of jobs';
      await expect(drawTerminal(lines, { commands, title })).toMatchFileSnapshot(
        join(root, 'docs/first-commands.svg'),
      );
    });

    test('the video and the rows are there', () => {
      expect(statSync(join(folder.path, 'video.mp4')).size).toBeGreaterThan(1_000);
      expect(ran.shown).toMatch(/second +sky +temperature\n\d+ +rain +(20|19\.99)/);
    });
  },
);

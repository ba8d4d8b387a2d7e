import { spawn } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { guidePages } from '../harness/files/guide.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

interface Block {
  page: string;
  text: string;
  /** The page says that the service refuses it: `<!-- refused -->` stands before it. */
  refused: boolean;
}

/** The fenced blocks of a page marked `sh`: those that are run as printed. Other languages are only shown. */
function readBlocks(page: string): Block[] {
  const blocks = read(page).matchAll(/^(<!-- refused -->\n)?```sh\n([\s\S]*?)^```$/gm);
  return [...blocks].map(([, mark, text = '']) => ({ page, text, refused: mark !== undefined }));
}

interface Ran {
  code: number | null;
  output: string;
}

/** Runs the blocks in one bash, which ends at the first command that fails and says in which block. */
function runBlocks(
  blocks: Block[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<Ran> {
  const script = blocks.map(({ page, text, refused }, n) => {
    // curl ends with 22 when an HTTP error made it fail.
    const commands = refused ? `status=0; ${text.trim()} || status=$?\n[ $status = 22 ]` : text;
    return `echo "=== ${page}, block ${n + 1}"\n${commands}`;
  });
  const bash = spawn('bash', ['-euo', 'pipefail', '-c', script.join('\n')], {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [bash.stdout, bash.stderr]) {
    stream.setEncoding('utf8').on('data', text => {
      output += text;
    });
  }
  return new Promise((resolve, reject) => {
    bash.once('error', reject);
    bash.once('close', code => resolve({ code, output }));
  });
}

describeUnless(missingPrograms('sshd', 'ssh', 'ffmpeg'), 'the commands of the guide', () => {
  const directory = makeTempDir('docs');
  let stack: Stack;
  let sshd: TestSshd;
  let ran: Ran;

  beforeAll(async () => {
    [stack, sshd] = await Promise.all([startStack(), startTestSshd()]);
    const key = join(directory.path, 'key');
    writeFileSync(key, `${sshd.privateKey}\n`, { mode: 0o600 });
    // An HTTP error makes curl fail, in every command, without a word in the pages.
    writeFileSync(join(directory.path, '.curlrc'), 'fail-with-body\nmax-time = 30\n');
    ran = await runBlocks(guidePages.flatMap(readBlocks), {
      cwd: directory.path,
      env: {
        PATH: process.env.PATH,
        HOME: directory.path,
        CURL_HOME: directory.path,
        URL: stack.url,
        LOGIN: `${stack.username}:${stack.password}`,
        SSH_HOST: sshd.host,
        SSH_PORT: String(sshd.port),
        SSH_USER: sshd.username,
        SSH_KEY: key,
      },
    });
  });
  afterAll(async () => {
    await stack?.stop();
    await sshd?.stop();
    directory.remove();
  });

  test('all succeed', () => {
    expect(ran.code, ran.output).toBe(0);
  });

  test('the launch answers, the events hold the output, and the job ends well', () => {
    expect(ran.output).toContain('"returncode":0');
    expect(ran.output).toMatch(/event: output\nid: \S+\ndata: .*step 1/);
    expect(ran.output).toMatch(/step 3\\n/);
    expect(ran.output).toContain('data: {"state":"succeeded"}');
  });

  test('a cancelled job says so, and a repeated request gets the first answer', () => {
    expect(ran.output).toMatch(/event: state\nid: 0-0\ndata: \{"state":"cancelled"/);
    expect(ran.output).toMatch(/(\{"command":"date [^}]*"output":"\d+\\n"[^}]*\})\1/);
  });

  test('the video comes whole and by range', () => {
    const whole = readFileSync(join(directory.path, 'video.mp4'));
    expect(whole.subarray(4, 8).toString()).toBe('ftyp');
    expect(statSync(join(directory.path, 'first-bytes')).size).toBe(1_000);
    expect(readFileSync(join(directory.path, 'first-bytes'))).toEqual(whole.subarray(0, 1_000));
  });

  test('a directory of the host is listed, and the beginning of a file is fetched', () => {
    expect(ran.output).toMatch(/"names":\[[^\n]*"001\.png"/);
    const begin = readFileSync(join(directory.path, 'frame-begins'));
    expect(begin.toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
  });

  test('a file and a cached video come back as they were sent', () => {
    const whole = readFileSync(join(directory.path, 'video.mp4'));
    expect(readFileSync(join(directory.path, 'copy.mp4'))).toEqual(whole);
    expect(readFileSync(join(directory.path, 'cached.mp4'))).toEqual(whole);
  });

  test('a finish that came too early names the part, and tables answer what was uploaded', () => {
    expect(ran.output).toContain('Upload incomplete');
    expect(ran.output).toMatch(/"missing":\[\[1,0\]\]/);
    expect(ran.output).toMatch(/"rows":86400/);
    expect(ran.output).toMatch(/"rows":\[\[\d+,"rain",(20|19\.99)/);
    expect(ran.output).toMatch(/"offset":43200,[^\n]*"rows":\[\[43201,/);
    expect(ran.output).toMatch(/"column":"sky",[^\n]*"count":74058/);
  });

  test('a parameter and a bookmark are what was stored', () => {
    expect(ran.output).toContain('123456789012345678901234567890');
    expect(ran.output).toContain('{"camera": [0, 12.5, 3], "selection": [17, 4]}');
  });

  test('cookies and tokens say who it is', () => {
    expect(ran.output).toContain('"success":true');
    expect(ran.output).toMatch(/"success":true[^\n]*\}\{"username":"admin"/);
  });
});

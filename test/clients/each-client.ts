import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { openFile } from '../../clients/typescript/src/node.ts';
import type { Run } from '../../clients/typescript/src/run.ts';
import { Windlass } from '../../clients/typescript/src/windlass.ts';
import { findProgram } from '../../scripts/programs.ts';
import { PYTHON_CLIENT, type TestPython } from '../../scripts/python-client.ts';
import { bundleForPage } from '../harness/browser/page-script.ts';
import { type Ended, startCommandLine } from '../harness/clients/command-line.ts';

/** What a client showed, line by line. */
export type Shown = Record<'stdout' | 'stderr', string[]>;

/** Where a client finds the service, and as whom. */
export interface ServiceLogin {
  url: string;
  token: string;
  /** An open session on the host. */
  sid: string;
}

/** What each of our clients can do, as its users would have it done. */
export interface EachClient {
  run(login: ServiceLogin, command: string): Promise<Shown>;
  follow(login: ServiceLogin, job: string): Promise<Shown>;
  upload(login: ServiceLogin, file: string, to: { mid: string; aid: string }): Promise<void>;
  /** A file of this machine to a path on the host. */
  write(login: ServiceLogin, file: string, target: string): Promise<void>;
  stop(): Promise<void>;
}

async function gather(run: Pick<Run, typeof Symbol.asyncIterator>): Promise<Shown> {
  const shown: Shown = { stdout: [], stderr: [] };
  for await (const { stream, text } of run) shown[stream].push(text);
  return shown;
}

const nodeClient: EachClient = {
  run: ({ sid, ...login }, command) => gather(new Windlass(login).session(sid).run(command)),
  follow: (login, job) => gather(new Windlass(login).follow(job)),
  async upload(login, path, { mid, aid }) {
    const file = await openFile(path);
    try {
      await new Windlass(login).upload(file, { mid, parser: 'blob', aids: [aid] });
    } finally {
      await file.close();
    }
  },
  async write({ sid, ...login }, path, target) {
    const file = await openFile(path);
    try {
      await new Windlass(login).session(sid).writeFile(target, file);
    } finally {
      await file.close();
    }
  },
  stop: async () => {},
};

const CLIENT = fileURLToPath(new URL('../../clients/typescript/src/index.ts', import.meta.url));

async function startPages(): Promise<EachClient> {
  const [script, browser] = await Promise.all([
    bundleForPage(CLIENT, 'windlassClient'),
    chromium.launch({ executablePath: findProgram('chromium'), args: ['--no-sandbox'] }),
  ]);
  const evaluate = async (login: ServiceLogin, work: string, file?: string) => {
    const page = await openPage(browser, login, script);
    try {
      if (file) await page.setInputFiles('input', file);
      return await page.evaluate<Shown>(`(async () => {
        const { url, token, sid } = ${JSON.stringify(login)};
        const windlass = new windlassClient.Windlass({ url, token });
        const gather = ${gather};
        ${work}
      })()`);
    } finally {
      await page.close();
    }
  };
  return {
    run: (login, command) =>
      evaluate(login, `return gather(windlass.session(sid).run(${JSON.stringify(command)}))`),
    follow: (login, job) => evaluate(login, `return gather(windlass.follow('${job}'))`),
    async upload(login, path, { mid, aid }) {
      const given = JSON.stringify({ mid, parser: 'blob', aids: [aid] });
      const work = `await windlass.upload(document.querySelector('input').files[0], ${given})`;
      await evaluate(login, work, path);
    },
    async write(login, path, target) {
      const file = "document.querySelector('input').files[0]";
      const work = `await windlass.session(sid).writeFile(${JSON.stringify(target)}, ${file})`;
      await evaluate(login, work, path);
    },
    stop: () => browser.close(),
  };
}

async function openPage(browser: Browser, { url }: ServiceLogin, script: string) {
  const page = await browser.newPage();
  await page.goto(`${url}/healthz`);
  await page.evaluate(`document.body.innerHTML = '<input type=file>'`);
  await page.addScriptTag({ content: script });
  return page;
}

const PYTHON = `import json, os, sys
import windlass
task, *given = sys.argv[1:]
client = windlass.Client(os.environ["WINDLASS_URL"], token=os.environ["WINDLASS_TOKEN"])
if task == "upload":
    client.upload(given[0], model=given[1], aid=given[2], parser="blob")
elif task == "write":
    with open(given[1], "rb") as file:
        client.session(given[0]).write_file(given[2], file.read())
else:
    shown = {"stdout": [], "stderr": []}
    run = client.session(given[0]).run(given[1]) if task == "run" else client.follow(given[0])
    for line in run:
        shown[line.stream].append(line.text)
    json.dump(shown, sys.stdout)
`;

async function startPython({ python }: TestPython): Promise<EachClient> {
  const line = await startCommandLine();
  const call = async ({ url, token }: ServiceLogin, ...args: string[]) => {
    const env = {
      PYTHONPATH: join(PYTHON_CLIENT, 'src'),
      PYTHONDONTWRITEBYTECODE: '1',
      WINDLASS_URL: url,
      WINDLASS_TOKEN: token,
    };
    return expectSuccess(await line.startProgram(python, ['-c', PYTHON, ...args], { env }).ended);
  };
  return {
    run: async (login, command) => JSON.parse(await call(login, 'run', login.sid, command)),
    follow: async (login, job) => JSON.parse(await call(login, 'follow', job)),
    upload: async (login, path, { mid, aid }) => {
      await call(login, 'upload', path, mid, aid);
    },
    write: async (login, path, target) => {
      await call(login, 'write', login.sid, path, target);
    },
    stop: () => line.stop(),
  };
}

async function startShell(): Promise<EachClient> {
  const line = await startCommandLine();
  const call = ({ url, token }: ServiceLogin, args: string[]) =>
    line.run(args, { env: { WINDLASS_URL: url, WINDLASS_TOKEN: token } });
  const lines = (text: string) => text.split('\n').slice(0, -1);
  const show = ({ stdout, stderr, code }: Ended): Shown => {
    if (code !== 0) throw new Error(`it ended with ${code}: ${stderr.slice(-500)}`);
    // What is told when the service is unreachable.
    const own = /^windlass: .* Trying again\.$/;
    return { stdout: lines(stdout), stderr: lines(stderr).filter(text => !own.test(text)) };
  };
  return {
    run: async (login, command) => show(await call(login, ['run', 'host', '--', command])),
    follow: async (login, job) => show(await call(login, ['logs', '-f', job])),
    upload: async (login, path, { mid, aid }) => {
      const args = ['upload', path, '--model', mid, '--aid', aid, '--parser', 'blob'];
      expectSuccess(await call(login, args));
    },
    write: async (login, path, target) => {
      expectSuccess(await call(login, ['cp', path, `host:${target}`]));
    },
    stop: () => line.stop(),
  };
}

function expectSuccess({ code, stdout, stderr }: Ended): string {
  if (code !== 0) throw new Error(`it ended with ${code}: ${stderr.slice(-2_000)}`);
  return stdout;
}

/** Each of them, by what people call it. */
export const startClient = (python: TestPython) => ({
  'TypeScript in Node': async () => nodeClient,
  'TypeScript in Chromium': startPages,
  Python: () => startPython(python),
  'the command line': startShell,
});

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
export interface Place {
  url: string;
  token: string;
  /** An open session on the host. */
  sid: string;
}

/** What each of our clients can do, as its users would have it done. */
export interface EachClient {
  run(place: Place, command: string): Promise<Shown>;
  follow(place: Place, job: string): Promise<Shown>;
  upload(place: Place, file: string, to: { mid: string; aid: string }): Promise<void>;
  /** A file of this machine to a path on the host. */
  write(place: Place, file: string, target: string): Promise<void>;
  stop(): Promise<void>;
}

async function gather(run: Pick<Run, typeof Symbol.asyncIterator>): Promise<Shown> {
  const shown: Shown = { stdout: [], stderr: [] };
  for await (const { stream, text } of run) shown[stream].push(text);
  return shown;
}

const nodeClient: EachClient = {
  run: ({ sid, ...place }, command) => gather(new Windlass(place).session(sid).run(command)),
  follow: (place, job) => gather(new Windlass(place).follow(job)),
  async upload(place, path, { mid, aid }) {
    const file = await openFile(path);
    try {
      await new Windlass(place).upload(file, { mid, parser: 'blob', aids: [aid] });
    } finally {
      await file.close();
    }
  },
  async write({ sid, ...place }, path, target) {
    const file = await openFile(path);
    try {
      await new Windlass(place).session(sid).writeFile(target, file);
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
  const evaluate = async (place: Place, work: string, file?: string) => {
    const page = await openPage(browser, place, script);
    try {
      if (file) await page.setInputFiles('input', file);
      return await page.evaluate<Shown>(`(async () => {
        const { url, token, sid } = ${JSON.stringify(place)};
        const windlass = new windlassClient.Windlass({ url, token });
        const gather = ${gather};
        ${work}
      })()`);
    } finally {
      await page.close();
    }
  };
  return {
    run: (place, command) =>
      evaluate(place, `return gather(windlass.session(sid).run(${JSON.stringify(command)}))`),
    follow: (place, job) => evaluate(place, `return gather(windlass.follow('${job}'))`),
    async upload(place, path, { mid, aid }) {
      const given = JSON.stringify({ mid, parser: 'blob', aids: [aid] });
      const work = `await windlass.upload(document.querySelector('input').files[0], ${given})`;
      await evaluate(place, work, path);
    },
    async write(place, path, target) {
      const file = "document.querySelector('input').files[0]";
      const work = `await windlass.session(sid).writeFile(${JSON.stringify(target)}, ${file})`;
      await evaluate(place, work, path);
    },
    stop: () => browser.close(),
  };
}

async function openPage(browser: Browser, { url }: Place, script: string) {
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
  const call = async ({ url, token }: Place, ...args: string[]) => {
    const env = {
      PYTHONPATH: join(PYTHON_CLIENT, 'src'),
      PYTHONDONTWRITEBYTECODE: '1',
      WINDLASS_URL: url,
      WINDLASS_TOKEN: token,
    };
    return expectSuccess(await line.startProgram(python, ['-c', PYTHON, ...args], { env }).ended);
  };
  return {
    run: async (place, command) => JSON.parse(await call(place, 'run', place.sid, command)),
    follow: async (place, job) => JSON.parse(await call(place, 'follow', job)),
    upload: async (place, path, { mid, aid }) => {
      await call(place, 'upload', path, mid, aid);
    },
    write: async (place, path, target) => {
      await call(place, 'write', place.sid, path, target);
    },
    stop: () => line.stop(),
  };
}

async function startShell(): Promise<EachClient> {
  const line = await startCommandLine();
  const call = ({ url, token }: Place, args: string[]) =>
    line.run(args, { env: { WINDLASS_URL: url, WINDLASS_TOKEN: token } });
  const lines = (text: string) => text.split('\n').slice(0, -1);
  const show = ({ stdout, stderr, code }: Ended): Shown => {
    if (code !== 0) throw new Error(`it ended with ${code}: ${stderr.slice(-500)}`);
    // What is told when the service is unreachable.
    const own = /^windlass: .* Trying again\.$/;
    return { stdout: lines(stdout), stderr: lines(stderr).filter(text => !own.test(text)) };
  };
  return {
    run: async (place, command) => show(await call(place, ['run', 'host', '--', command])),
    follow: async (place, job) => show(await call(place, ['logs', '-f', job])),
    upload: async (place, path, { mid, aid }) => {
      const args = ['upload', path, '--model', mid, '--aid', aid, '--parser', 'blob'];
      expectSuccess(await call(place, args));
    },
    write: async (place, path, target) => {
      expectSuccess(await call(place, ['cp', path, `host:${target}`]));
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

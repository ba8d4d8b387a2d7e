import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));
const INSTALL_ALL = 'npm ci --include=dev';

interface Stage {
  name: string;
  steps: { instruction: string; text: string }[];
}

/** What an image is made of, where no engine is there to make it. */
export interface BuiltImage {
  /** What WORKDIR is in the image. */
  directory: string;
  environment: Record<string, string>;
  command: string[];
  healthcheck: string[];
  /** RUN instructions that need the image's own system. */
  leftOut: string[];
}

/**
 * Does what the Dockerfile says in folders of this machine: COPY from what .dockerignore lets through and from earlier
 * stages, and every RUN but those that install Debian's packages. What the checkout has installed is not installed again.
 */
export async function buildImage(directory: string): Promise<BuiltImage> {
  const context = join(directory, 'context');
  copyContext(context);
  const leftOut: string[] = [];
  const environment: Record<string, string> = {};
  const words: Record<string, string[]> = {};
  let last = context;
  for (const stage of readStages(readFileSync(join(CHECKOUT, 'Dockerfile'), 'utf8'))) {
    last = join(directory, stage.name);
    mkdirSync(last);
    for (const { instruction, text } of stage.steps) {
      if (instruction === 'COPY') copy({ text, context, directory, into: last });
      else if (instruction === 'RUN' && text.includes('apt-get')) leftOut.push(text);
      else if (instruction === 'RUN' && text === INSTALL_ALL) linkPackages(last);
      else if (instruction === 'RUN') await run(text, last);
      else if (instruction === 'ENV') Object.assign(environment, readPairs(text));
      else words[instruction] = readExecForm(text);
    }
  }
  return {
    directory: last,
    environment,
    command: words.CMD ?? [],
    healthcheck: words.HEALTHCHECK ?? [],
    leftOut,
  };
}

function readStages(text: string): Stage[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter(line => line.trim() !== '');
  const stages: Stage[] = [];
  for (const line of lines) {
    const [, instruction = '', text = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (instruction === 'FROM') {
      stages.push({ name: / AS (\w+)$/.exec(text)?.[1] ?? 'final', steps: [] });
    } else stages.at(-1)?.steps.push({ instruction, text });
  }
  return stages;
}

function copy(options: { text: string; context: string; directory: string; into: string }): void {
  const { text, context, directory, into } = options;
  const words = text.split(/\s+/);
  const stage = /^--from=(\w+)$/.exec(words[0] ?? '')?.[1];
  const paths = stage ? words.slice(1) : words;
  const target = paths.pop() ?? '';
  for (const path of paths) {
    // Everything lies in WORKDIR, /app.
    const source = stage
      ? join(directory, stage, path.replace(/^\/app\//, ''))
      : join(context, path);
    const isFolder = target.endsWith('/') && path !== '.';
    const to = join(into, target, isFolder ? basename(path) : '');
    // Moved where that will do: node_modules has ten thousand files, and no stage is read twice.
    if (stage) renameSync(source, to);
    else cpSync(source, to, { recursive: true });
  }
}

/** The checkout's packages are what `npm ci` installs from the same lockfile: 30 s of processor time. */
function linkPackages(stage: string): void {
  symlinkSync(join(CHECKOUT, 'node_modules'), join(stage, 'node_modules'));
}

/** Asynchronous: npm takes minutes on a busy machine, and the test runner wants news of its tests meanwhile. */
async function run(command: string, cwd: string): Promise<void> {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, npm_config_prefer_offline: 'true' };
  await promisify(execFile)('/bin/sh', ['-c', command], { cwd, env, maxBuffer: 64 << 20 });
}

/** The words of `["node", …]`, wherever it begins. */
function readExecForm(text: string): string[] {
  const form = /\[.*\]$/.exec(text)?.[0];
  return form ? JSON.parse(form) : [];
}

function readPairs(text: string): Record<string, string> {
  return Object.fromEntries(text.split(/\s+/).map(pair => pair.split(/=(.*)/s).slice(0, 2)));
}

/** The files of the checkout that .dockerignore lets through; it may say `*`, `!path` and a double star before an ending. */
function copyContext(target: string): void {
  const rules = readFileSync(join(CHECKOUT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'));
  const kept = rules.filter(rule => rule.startsWith('!')).map(rule => rule.slice(1));
  const endings = rules.filter(rule => rule.startsWith('**/*')).map(rule => rule.slice(4));
  if (rules[0] !== '*' || rules.length !== 1 + kept.length + endings.length)
    throw new Error('.dockerignore says more than this test understands.');
  for (const path of readdirSync(CHECKOUT).filter(name => kept.includes(name))) {
    cpSync(join(CHECKOUT, path), join(target, path), {
      recursive: true,
      filter: source => !endings.some(ending => source.endsWith(ending)),
    });
  }
}

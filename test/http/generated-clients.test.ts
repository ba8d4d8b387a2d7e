import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findPythonGenerator, findTypeScriptGenerators } from '../../scripts/client-generators.ts';
import { canInstallPython } from '../../scripts/install-python.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeUnless } from '../harness/skip.ts';
import { readDocument } from './read-document.ts';

/** Bytes of these types openapi-python-client does not know to be bytes, unless it is told so. */
const UNKNOWN_TO_PYTHON = [
  'application/offset+octet-stream',
  'application/vnd.apache.parquet',
  'image/jpeg',
  'video/mp4',
  'video/webm',
];
/** What a program says to the clients, and what it reads of their answers. */
const USES: Record<'types' | 'fetch' | 'python', string> = {
  types: `import type { components, operations } from './client/schema.js';
type Command = components['schemas']['Command'];
type Answer = operations['launchCommand']['responses'][200]['content']['application/json'];
export const toCode = (answer: Answer): number => (answer satisfies Command).returncode;
export function tell(event: components['schemas']['JobEvent']): string | undefined {
  return event.event === 'output' ? event.data.text : undefined;
}
`,
  fetch: `import { launchCommand, listJobs } from './client/index.js';
export async function run(sid: string): Promise<number | undefined> {
  const { data } = await launchCommand({ body: { sid, command: 'true' } });
  return data && 'returncode' in data ? data.returncode : undefined;
}
export async function labels(): Promise<string[]> {
  const { data } = await listJobs({ query: { state: ['running'] } });
  return (data?.items ?? []).flatMap(job => ('label' in job ? (job.label ?? []) : []));
}
`,
  python: `from client import AuthenticatedClient
from client.api.commands import launch_command
from client.models import Command, NewCommand


def run(client: AuthenticatedClient, sid: str) -> int:
    answer = launch_command.sync(client=client, body=NewCommand(sid=sid, command="true"))
    assert isinstance(answer, Command)
    return answer.returncode
`,
};
const IMPORT_ALL = `import importlib, pkgutil, client
names = [module.name for module in pkgutil.walk_packages(client.__path__, "client.")]
for name in names:
    importlib.import_module(name)
print(len(names))
`;

const folder = makeTempDir('generated-clients');
const generators = findTypeScriptGenerators();
const python = findPythonGenerator();
const missing = (what: string, obtainable: boolean) => ({ reason: `needs ${what}`, obtainable });
let mediaTypes: string[];

beforeAll(async () => {
  const document = await readDocument();
  writeFileSync(join(folder.path, 'openapi.json'), JSON.stringify(document));
  mediaTypes = [...JSON.stringify(document).matchAll(/"(\w+\/[\w.+-]+)":\{/g)].map(
    ([, type = '']) => type,
  );
});
afterAll(() => folder.remove());

/** Runs a program to its end, in the folder; what it said, without colours. */
function run(program: string, args: string[], cwd: string): string {
  const env = { ...process.env, NO_COLOR: '1', PYTHONDONTWRITEBYTECODE: '1' };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: 'utf8' });
  const said = `${stdout}${stderr}`;
  expect([status, said]).toEqual([0, expect.any(String)]);
  return said;
}

const saysTrouble = (said: string) => /warn|error|unsupported|fail|duplicate/i.test(said);

/** Generates into `client` in a folder of its own, and checks the types of that and of a program that uses it. */
function checkTypeScript(kind: 'types' | 'fetch', generate: (cwd: string) => string): void {
  const cwd = join(folder.path, kind);
  mkdirSync(cwd);
  const said = generate(cwd);
  expect([said, saysTrouble(said)]).toEqual([said, false]);
  writeFileSync(join(cwd, 'use.ts'), USES[kind]);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    types: [],
    target: 'es2022',
    module: 'esnext',
    moduleResolution: 'bundler',
    lib: ['es2022', 'dom', 'dom.iterable'],
  };
  writeFileSync(
    join(cwd, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['use.ts', 'client'] }),
  );
  const root = join(import.meta.dirname, '../..');
  expect(run(join(root, 'node_modules/.bin/tsc'), ['-p', cwd], cwd)).toBe('');
}

describeUnless(
  generators === undefined ? missing('npm and scripts/client-generators', true) : undefined,
  'clients in TypeScript, generated without a warning, type-check',
  () => {
    const program = (path: string) => join(generators ?? '', 'node_modules', path);

    test('by openapi-typescript', () => {
      checkTypeScript('types', cwd =>
        run(
          process.execPath,
          [program('openapi-typescript/bin/cli.js'), '../openapi.json', '-o', 'client/schema.d.ts'],
          cwd,
        ),
      );
    });

    test('by @hey-api/openapi-ts', () => {
      checkTypeScript('fetch', cwd =>
        run(
          process.execPath,
          [program('@hey-api/openapi-ts/bin/run.js'), '-i', '../openapi.json', '-o', 'client'],
          cwd,
        ),
      );
    });
  },
);

describeUnless(
  python === undefined ? missing('openapi-python-client', canInstallPython()) : undefined,
  'a client in Python, generated without a warning, type-checks',
  () => {
    const generate = (config: object, output: string) => {
      writeFileSync(join(folder.path, 'config.json'), JSON.stringify(config));
      const from = ['--path', 'openapi.json', '--config', 'config.json', '--meta', 'none'];
      return run(
        python ?? '',
        ['-m', 'openapi_python_client', 'generate', ...from, '--output-path', output],
        folder.path,
      );
    };

    test('by openapi-python-client, where types of bytes are told to be bytes', () => {
      const bytes = UNKNOWN_TO_PYTHON.map(type => [type, 'application/octet-stream']);
      const config = { post_hooks: [], content_type_overrides: Object.fromEntries(bytes) };
      const said = generate(config, 'client');
      expect([said, saysTrouble(said)]).toEqual([said, false]);
      writeFileSync(join(folder.path, 'use.py'), USES.python);
      const checked = run(
        python ?? '',
        ['-m', 'mypy', '--strict', 'client', 'use.py'],
        folder.path,
      );
      expect(checked).toMatch(/^Success: no issues found/);
      // A name that is used before it is there shows when a module is loaded.
      expect(Number(run(python ?? '', ['-c', IMPORT_ALL], folder.path))).toBeGreaterThan(200);
    });

    test('these types alone are unknown to it', () => {
      const said = generate({ post_hooks: [] }, 'untold');
      const named = [...said.matchAll(/\w+\/[\w.+-]+(?=[,)\n]| *$)/gm)].map(([type]) => type);
      const unknown = new Set(named.filter(type => mediaTypes.includes(type)));
      expect([...unknown].sort()).toEqual(UNKNOWN_TO_PYTHON);
      const warnings = said.match(/Unsupported content.type/g) ?? [];
      expect(said.match(/^WARNING/gm)).toHaveLength(warnings.length);
    });
  },
);

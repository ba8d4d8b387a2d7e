import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findSchemathesis } from '../../scripts/programs.ts';
import { isFull, steadySeed as seed } from '../faults/settings.ts';
import { missingSchemathesis } from '../harness/clients/schemathesis.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { connectClient, isEnded, type Job } from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';
import { makeSeeds } from './schemathesis/seeds.ts';

/** What is asked of each operation; what `coverage` adds by itself is some 2,000 cases in all. */
const EXAMPLES = isFull ? 900 : 8;
const CASES = isFull ? 50_000 : 3_000;
const MINUTES = isFull ? 180 : 25;

// What the service is held against is the same on both forms; this is about what comes in over HTTP.
describeUnless(missingSchemathesis() ?? missingPrograms('sshd'), 'Schemathesis', () => {
  const directory = makeTempDir('schemathesis');
  let stack: Stack;
  let sshd: TestSshd;
  let seeds: Record<string, unknown>;

  beforeAll(async () => {
    [stack, sshd] = await Promise.all([
      startStack({ env: { LIMIT_REQUESTS: '0', LIMIT_FAILED_LOGINS: '0', LIMIT_SESSIONS: '0' } }),
      startTestSshd(),
    ]);
    seeds = await makeSeeds(connectClient(stack), sshd, 'a long password');
    const client = connectClient(stack);
    await waitFor(
      async () => (await client.get<{ items: Job[] }>('/api/jobs')).items.every(isEnded),
      {
        what: 'the uploads to be parsed',
      },
    );
  });
  afterAll(async () => {
    await stack?.stop();
    await sshd?.stop();
    directory.remove();
  });

  // One worker: with more, Python 3.11's own parser fails now and then ("AST constructor recursion depth mismatch").
  /** The settings of Schemathesis: https://schemathesis.readthedocs.io/en/stable/reference/configuration/ */
  function writeSettings(): string {
    const settings = join(directory.path, 'schemathesis.toml');
    const refusals = [400, 401, 403, 404, 405, 409, 412, 413, 414, 415, 416, 423, 429];
    writeFileSync(
      settings,
      `hooks = ${JSON.stringify(join(import.meta.dirname, 'schemathesis', 'hooks.py'))}
color = false
continue-on-failure = true
request-timeout = 60
seed = ${seed}
[auth]
basic = { username = ${JSON.stringify(stack.username)}, password = ${JSON.stringify(stack.password)} }
[generation]
max-examples = ${EXAMPLES}
no-shrink = true
database = "none"
[output.sanitization]
enabled = true
[checks.negative_data_rejection]
expected-statuses = ${JSON.stringify(refusals)}
[phases.stateful]
enabled = false
`,
    );
    return settings;
  }

  async function runSchemathesis(): Promise<{ code: number | null; output: string }> {
    const args = ['-m', 'schemathesis.cli', '--config-file', writeSettings(), 'run'];
    const child = spawn(
      findSchemathesis() ?? '',
      [...args, `${stack.url}/api/openapi.json`, '--url', stack.url],
      {
        cwd: directory.path,
        env: {
          ...process.env,
          WINDLASS_SEEDS: JSON.stringify(seeds),
          PYTHONDONTWRITEBYTECODE: '1',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', text => {
        output += text;
      });
    }
    // So that what it had done is told where it does not end.
    const deadline = setTimeout(() => child.kill('SIGKILL'), (MINUTES - 1) * 60_000);
    try {
      const [code] = await once(child, 'close');
      return { code, output };
    } finally {
      clearTimeout(deadline);
    }
  }

  test(
    `${CASES} requests find no 5xx, no undocumented answer and nothing accepted that should not be`,
    async () => {
      const { code, output } = await runSchemathesis();
      const told = `With FAULT_SEED=${seed}:\n${output.replace(/^/gm, '| ')}`;
      expect(code, told).toBe(0);
      const operations = /^ +Tested: (\d+)/m.exec(output)?.[1];
      const { paths } = (await (await fetch(`${stack.url}/api/openapi.json`)).json()) as {
        paths: Record<string, object>;
      };
      // It does not ask again for what it was told by.
      delete paths['/api/openapi.json'];
      const described = Object.values(paths).flatMap(methods => Object.keys(methods));
      expect(Number(operations), told).toBe(described.length);
      expect(Number(/^ +(\d+) generated/m.exec(output)?.[1]), told).toBeGreaterThanOrEqual(CASES);
      expect(await fetch(`${stack.url}/readyz`).then(response => response.status)).toBe(200);
    },
    MINUTES * 60_000,
  );

  test('nothing of it went wrong behind the answers', () => {
    const lines = stack
      .log()
      .split('\n')
      .filter(line => /"level":(40|50|60)/.test(line));
    expect(lines).toEqual([]);
  });
});

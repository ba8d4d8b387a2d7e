import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findTypeScriptGenerators } from '../../scripts/client-generators.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeUnless } from '../harness/skip.ts';
import { readDocument } from '../http/read-document.ts';

const SCHEMA = join(import.meta.dirname, '../../clients/typescript/src/schema.ts');
const NOTICE = `/**
 * The types of the service, made by openapi-typescript from its description. After a change of the API:
 * \`npx vitest run --update --project acceptance test/clients/schema.test.ts\`
 */
`;

const generators = findTypeScriptGenerators();
const missing = { reason: 'needs npm and scripts/client-generators', obtainable: true };
const folder = makeTempDir('client-schema');
afterAll(() => folder.remove());

describeUnless(generators === undefined ? missing : undefined, '@windlass/client', () => {
  test('has the types of the present description', async () => {
    const description = join(folder.path, 'openapi.json');
    const made = join(folder.path, 'schema.ts');
    writeFileSync(description, JSON.stringify(await readDocument()));
    const program = join(generators ?? '', 'node_modules/openapi-typescript/bin/cli.js');
    // A request may leave out what has a default.
    const options = ['--default-non-nullable', 'false', '-o', made];
    const { status, stderr } = spawnSync(process.execPath, [program, description, ...options], {
      encoding: 'utf8',
      env: { ...process.env, NO_COLOR: '1' },
    });
    expect([status, stderr]).toEqual([0, '']);
    const types = readFileSync(made, 'utf8').replace(/^\/\*\*[\s\S]*?\*\/\s*/, '');
    await expect(`${NOTICE}\n${types}`).toMatchFileSnapshot(SCHEMA);
  });
});

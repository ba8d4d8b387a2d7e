import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { partSecrets, secretsMessage } from './handed-secrets.ts';

const PROGRAM = fileURLToPath(
  new URL('../../dist/shared/secrets/handed-secrets.js', import.meta.url),
);

test('a process that is just starting gets the later ones of those that wait for it', async () => {
  const code = `
    setTimeout(async () => {
      const { receiveSecrets } = await import(${JSON.stringify(PROGRAM)});
      const { environment, onChange } = await receiveSecrets(process.env);
      onChange(({ KEY }) => console.log(environment.KEY, KEY));
      setTimeout(() => process.disconnect(), 0);
    }, 200);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    env: { PATH: process.env.PATH, ...partSecrets({}).open },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const said = text(child.stdout as NonNullable<typeof child.stdout>);
  for (const KEY of ['first', 'second']) child.send(secretsMessage({ KEY }));
  await once(child, 'exit');
  expect((await said).trim().split('\n').at(-1)).toBe('second second');
});

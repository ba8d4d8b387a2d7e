import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../../servers/free-port.ts';
import { awaitExit, endWithThisProcess } from '../../../servers/processes.ts';
import { readSettings } from '../databases/database.ts';
import { waitFor } from '../wait-for.ts';
import type { Stack } from './stack.ts';

const API = fileURLToPath(new URL('../../../dist/api/main.js', import.meta.url));

/** Another API process beside the embedded form's own: a fleet has two. */
export interface SecondApi {
  url: string;
  /** Ends it as a crash does. */
  kill(): void;
  stop(): Promise<void>;
}

/** Starts one with the settings that the stack's own has now, or others. Its standard output may be a descriptor. */
export async function startSecondApi(
  stack: Stack,
  others: Record<string, string> = {},
  stdout: number | 'ignore' = 'ignore',
): Promise<SecondApi> {
  const env = { ...(await readSettings(stack)), ...others, PORT: String(await findFreePort()) };
  const child = spawn(process.execPath, [API], { env, stdio: ['ignore', stdout, 'ignore'] });
  endWithThisProcess(child);
  const url = `http://127.0.0.1:${env.PORT}`;
  await waitFor(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok, {
    what: 'the second process',
    timeoutMs: 30_000,
  });
  return {
    url,
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      const ended = awaitExit(child);
      child.kill();
      await ended;
    },
  };
}

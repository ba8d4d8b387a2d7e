import { spawnSync } from 'node:child_process';
import { FORMAT_READERS, findFormatReaders } from '../../../scripts/format-readers.ts';
import { canInstallPython } from '../../../scripts/install-python.ts';
import type { SkipReason } from '../skip.ts';

const python = findFormatReaders();

/** Undefined where Python's readers of formats are here, and otherwise why a test has to be skipped. */
export const missingReaders: SkipReason | undefined = python
  ? undefined
  : {
      reason: `needs the packages of ${FORMAT_READERS} for Python (npm run setup:test)`,
      obtainable: canInstallPython(),
    };

/** Runs a script of Python with the packages of scripts/format-readers.txt; what it prints as JSON. */
export function runReader<T>(script: string, ...args: string[]): T {
  const { stdout, stderr, status } = spawnSync(python ?? 'python3', ['-c', script, ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}

/** `npm run check`: checks lint, format, types, imports, exports and shell scripts concurrently. Fails if one of them fails. */
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from './programs.ts';

interface Check {
  name: string;
  command: string;
  args: string[];
}

// This file runs from dist/scripts.
const root = fileURLToPath(new URL('../../', import.meta.url));
const SKIPPED = new Set(['node_modules', 'dist', 'data', '.git', '.cache']);

const checks: Check[] = [
  {
    name: 'biome',
    command: process.execPath,
    args: ['node_modules/@biomejs/biome/bin/biome', 'check', '.'],
  },
  ...['.', 'console'].map(project => ({
    name: project === '.' ? 'tsc' : `tsc, ${project}`,
    command: process.execPath,
    args: ['node_modules/typescript/bin/tsc', '-p', project],
  })),
  { name: 'modules', command: process.execPath, args: ['dist/scripts/check-modules.js'] },
];
const shellcheck = findProgram('shellcheck');
if (shellcheck === undefined) {
  console.log('shellcheck: skipped, it is not on this machine (Debian: shellcheck)');
} else {
  const scripts = ['.ci/run', ...listShellScripts('.')];
  checks.push({ name: 'shellcheck', command: shellcheck, args: scripts });
}
const results = await Promise.all(checks.map(runCheck));
process.exitCode = results.every(Boolean) ? 0 : 1;

function listShellScripts(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : listShellScripts(path);
    return entry.name.endsWith('.sh') ? [path] : [];
  });
}

/** Runs a check and prints its output when it ends. */
function runCheck({ name, command, args }: Check): Promise<boolean> {
  return new Promise(settle => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', chunk => {
        output += chunk;
      });
    }
    child.once('error', error => {
      output += error.message;
    });
    child.once('close', (code, signal) => {
      console.log(`${output}${name}: ${code === 0 ? 'ok' : `failed (${signal ?? code})`}`);
      settle(code === 0);
    });
  });
}

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../../scripts/programs.ts';
import type { SkipReason } from '../skip.ts';

/** Why there can be no host without /proc here; undefined where there can. */
export function missingHiddenProc(): SkipReason | undefined {
  const hidden = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/proc']);
  if (hidden.status === 0) return undefined;
  return { reason: 'needs root that may mount over /proc in a namespace', obtainable: false };
}

/**
 * Hides /proc from whatever the returned shell starts; its `ps` tells the truth, as on systems that need no /proc for
 * it.
 */
export function hideProc(directory: string): { path: string; shell: string } {
  const folder = mkdtempSync(join(directory, 'no-proc-'));
  const put = (name: string, lines: string[]) => {
    const path = join(folder, name);
    writeFileSync(path, ['#!/bin/sh', ...lines, ''].join('\n'));
    chmodSync(path, 0o755);
    return path;
  };
  const proc = join(folder, 'proc');
  mkdirSync(proc);
  const dash = findProgram('dash') ?? '/bin/sh';
  const ps = findProgram('ps') ?? '/bin/ps';
  const hide = `mount --bind /proc ${proc} && mount -t tmpfs tmpfs /proc && exec ${dash} "$@"`;
  put('ps', [`exec unshare -m /bin/sh -c 'mount --bind ${proc} /proc && exec ${ps} "$@"' ps "$@"`]);
  const shell = put('dash', [
    `if [ ! -e /proc/version ]; then exec ${dash} "$@"; fi`,
    `exec unshare -m /bin/sh -c '${hide}' dash "$@"`,
  ]);
  return { path: `${folder}:/usr/local/bin:/usr/bin:/bin`, shell };
}

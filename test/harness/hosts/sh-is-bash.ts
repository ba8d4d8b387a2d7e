import { findProgram } from '../../../scripts/programs.ts';
import type { LocalExec } from './local-exec.ts';

/** Functions that people give the names of utilities, as bash exports them. */
export const SHADOWS = {
  'BASH_FUNC_cat%%': '() { command cat -n "$@"; }',
  'BASH_FUNC_wc%%': '() { command wc -l "$@"; }',
  'BASH_FUNC_head%%': '() { command head -n 1; }',
  'BASH_FUNC_mv%%': '() { command mv -i "$@"; }',
  'BASH_FUNC_rm%%': '() { echo removed; }',
  'BASH_FUNC_printf%%': '() { builtin echo "<$*>"; }',
  'BASH_FUNC_echo%%': '() { builtin echo "said: $*"; }',
  'BASH_FUNC_dd%%': '() { return 1; }',
  'BASH_FUNC_ls%%': '() { command ls -l --color=always "$@"; }',
  'BASH_FUNC_stat%%': '() { command stat -f "$@"; }',
};

/** Makes bash the /bin/sh of this host, as it is on many. */
export function makeShBash(host: LocalExec): LocalExec {
  const bash = `${findProgram('bash') ?? '/bin/bash'} --posix`;
  const exec = host.exec.bind(host);
  host.exec = (command, signal) => exec(command.replaceAll('/bin/sh', bash), signal);
  return host;
}

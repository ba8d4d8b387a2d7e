import { quoteWord } from './shell-quote.ts';

/** Names that shells reserve: read-only, special, or with a value that differs from what was assigned. */
const OF_SHELLS =
  /^(?:_|(?:BASH_|KSH|LC_|windlass_).*|BASH(?:OPTS|PID)?|CDPATH|CHILD_MAX|COLUMNS|COMP(?:REPLY|_[A-Z]+)|COPROC|DIRSTACK|E?[GU]ID|EDITOR|ENV|EPOCH(?:REALTIME|SECONDS)|EXECIGNORE|EXECSHELL|FCEDIT|FIGNORE|FPATH|FUNC(?:NAME|NEST)|GLOBIGNORE|GROUPS|HIST(?:CHARS|CMD|CONTROL|EDIT|FILE|FILESIZE|IGNORE|SIZE|TIMEFORMAT)|histchars|HOME|HOST(?:FILE|NAME|TYPE)|IFS|IGNOREEOF|INPUTRC|JOBMAX|LANG|LINENO|LINES|LOGNAME|MACHTYPE|MAIL(?:CHECK|MSG|PATH)?|MAPFILE|OLDPWD|OPT(?:ARG|ERR|IND)|OSTYPE|PATH(?:SEP)?|PGRP|PIPESTATUS|POSIXLY_CORRECT|PPID|PROMPT_(?:COMMAND|DIRTRIM)|PS[0-9]|PWD|READLINE_[A-Z]+|S?RANDOM|REPLY|SECONDS|SHELL(?:OPTS)?|SHLVL|SH_OPTIONS|TERM|TIMEFORMAT|TMOUT|USER(?:_ID|NAME)?|VISUAL)$/;

/**
 * Passes variables to a command in a script for sh: `before` is a command of its own, `words` precede the command.
 * Variables are exported, because every account can read arguments; only the shell's own names go, briefly, into
 * arguments of `env`.
 */
export function passVariables(env: Record<string, string>): { before: string[]; words: string[] } {
  const exported: string[] = [];
  const own: string[] = [];
  for (const [name, value] of Object.entries(env))
    (OF_SHELLS.test(name) ? own : exported).push(quoteWord(`${name}=${value}`));
  return {
    before: exported.length > 0 ? [`command export ${exported.join(' ')}`] : [],
    words: own.length > 0 ? ['env', ...own] : [],
  };
}

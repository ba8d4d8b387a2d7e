/**
 * Begins a program for sh, without the functions that the account exports. Where sh is bash it has them, and one that is
 * named as a program or a builtin would take its place: `cat` numbers lines, `rm` asks. Other shells have none.
 */
// biome-ignore lint/suspicious/noTemplateCurlyInString: of the shell
export const NO_FUNCTIONS = 'case ${BASH_VERSION:+bash} in bash) unset -f $(declare -F) ;; esac';

/** Precedes it where `eval "$windlass_functions"` gives them back to a program of the account. */
export const KEEP_FUNCTIONS =
  // biome-ignore lint/suspicious/noTemplateCurlyInString: of the shell
  'windlass_functions=${BASH_VERSION:+$(set +o posix; export -fp)}';

/**
 * Runs a script from standard input in a form that sh, csh and fish parse alike. Not `sh -s`, which bash reads byte by
 * byte: 8 s for 100,000 paths.
 */
export const SCRIPT_COMMAND = `/bin/sh -c '${NO_FUNCTIONS}; eval "$(cat)"'`;

/** The command, in sh, with a last line that tells whether it did what it was to do. */
export const orWords = (command: string): string =>
  `if ${command} </dev/null 2>&1; then echo done; else echo ': Failure'; fi`;

/** Why the host refused what orWords() made, in its own words; undefined where it did not. */
export const refusalIn = (said: string): string | undefined =>
  said.endsWith('done\n') ? undefined : (causeIn(said) ?? 'Failure');

/** The last words of the first message of a program, which tell the cause. */
export const causeIn = (said: string): string | undefined => /: ([^:\n]{1,100})$/m.exec(said)?.[1];

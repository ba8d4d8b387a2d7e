/** A digest of 64 bits; the names of all folders of pieces begin with one. */
const DIGEST = '[0-9a-f]'.repeat(16);

/**
 * Functions of sh for a folder of pieces. Another account that may write to the folder around it can give its name to
 * something else, but not change where a shell is: so each looks at the folder in which it already is.
 */
export const FOLDER_OF_PIECES = `
closed() { [ -O . ] && case $(ls -nd .) in d????-??-*) ;; *) false ;; esac; }
enter() { [ ! -L "$1" ] && cd "$1" 2>/dev/null && closed; }
drop() (
  [ ! -L "$1" ] && cd "$1" && [ -O . ] || exit
  ls -A | grep -Eqv '^([0-9]+-[0-9]+|whole(-[0-9]+)?|\\.windlass-.*)$' && exit
  rm -f [0-9]*-* whole* .windlass-*
  rmdir "$1"
) 2>/dev/null
`;

/** Removes those in `$d` that nobody has written to for so many days. */
export const dropOlderThan = (days: number) => `
for other in "$d"/.windlass-${DIGEST}*-*; do
  [ -z "$(find "$other" -prune -type d -mtime +${days} 2>/dev/null)" ] || drop "$other"
done`;

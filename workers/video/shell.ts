/** The text as one word of POSIX sh: single quotes keep every character, newlines too. Throws on NUL, which no argument can hold. */
export function quoteWord(text: string): string {
  if (text.includes('\0')) throw new Error('a NUL character in a shell word');
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

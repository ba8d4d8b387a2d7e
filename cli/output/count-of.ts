/** A number and a noun, as in "1 object" or "2 objects". */
export const countOf = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`;

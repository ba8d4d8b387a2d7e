/** An element in PostgreSQL's form: in quotes, where a backslash stands before a quote and a backslash, or bare. */
const ELEMENT = /"([^"\\]*(?:\\.[^"\\]*)*)"|[^{},]+/gs;

/** The text of an array of texts, in PostgreSQL's form. */
export const writeTexts = (texts: readonly string[]): string =>
  `{${texts.map(text => `"${text.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;

/** The texts of an array of one dimension in which none is missing. */
export const readTexts = (array: string): string[] =>
  Array.from(array.matchAll(ELEMENT), ([bare, quoted]) => quoted?.replace(/\\(.)/gs, '$1') ?? bare);

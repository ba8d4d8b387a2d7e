/** Signs for what cells of tables often have. */
const SIGNS: Record<string, string> = { '\n': '␊', '\r': '␍', '\t': '␉' };

/** The same on one line, with a sign for each line break and tab. */
export const printableCell = (text: string): string =>
  printable(text.replaceAll(/[\n\r\t]/g, sign => SIGNS[sign] ?? sign));

/** Text of others, made unable to move a terminal's cursor or turn the direction of text. */
export const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '\u{fffd}');

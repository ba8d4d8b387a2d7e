/** Signs for control characters that table cells often have. */
const SIGNS: Record<string, string> = { '\n': '␊', '\r': '␍', '\t': '␉' };

/** Like printable(), on one line: with a sign for each line break and tab. */
export const printableCell = (text: string): string =>
  printable(text.replaceAll(/[\n\r\t]/g, sign => SIGNS[sign] ?? sign));

/** Text of others, made unable to move a terminal's cursor or turn the direction of text. */
export const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '\u{fffd}');

/** What others wrote, so that it neither moves the cursor of a terminal nor turns the direction of text. */
export const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '\u{fffd}');

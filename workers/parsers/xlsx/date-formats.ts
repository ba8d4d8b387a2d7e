import { readWholeXml } from './read-xml.ts';

/** What a number of days is shown as. */
export type DateFormat = 'date' | 'time' | 'timestamp';

/** Excel's built-in formats of dates and times, including the East Asian ones. */
const BUILT_IN: Record<DateFormat, number[]> = {
  date: [14, 15, 16, 17, 27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58],
  time: [18, 19, 20, 21, 32, 33, 34, 35, 45, 47, 55, 56],
  timestamp: [22],
};
const MAX_STYLES = 100_000;

/** What each style of a cell shows a number as, if that is a date or a time of day. */
export async function readDateFormats(
  bytes: AsyncIterable<Buffer>,
): Promise<(DateFormat | undefined)[]> {
  const dates = new Map<number, DateFormat | undefined>();
  for (const format of ['date', 'time', 'timestamp'] as const)
    for (const id of BUILT_IN[format]) dates.set(id, format);
  const formats: number[] = [];
  let isCellFormats = false;
  // Conditional formats and table styles have number formats of their own.
  let isNumberFormats = false;
  await readWholeXml(bytes, {
    part: 'the list of formats',
    onOpen: ({ name, attributes }) => {
      const id = Number(attributes.numFmtId ?? 0);
      if (name === 'numFmts') isNumberFormats = true;
      else if (name === 'numFmt' && isNumberFormats)
        dates.set(id, dateFormatOf(attributes.formatCode ?? ''));
      else if (name === 'cellXfs') isCellFormats = true;
      else if (name === 'xf' && isCellFormats && formats.length < MAX_STYLES) formats.push(id);
    },
    onClose: name => {
      if (name === 'cellXfs') isCellFormats = false;
      else if (name === 'numFmts') isNumberFormats = false;
    },
  });
  return formats.map(id => dates.get(id));
}

/** What a format such as yyyy-mm-dd shows; undefined for numbers and durations ([h]:mm). */
export function dateFormatOf(code: string): DateFormat | undefined {
  const [first = ''] = code
    .replace(/"[^"]*"|\\.|_.|\*./g, '')
    .toLowerCase()
    .split(';');
  if (/\[(h+|m+|s+)\]/.test(first)) return undefined;
  const bare = first.replace(/\[[^[\]]*\]/g, '').replace(/general|am\/pm|a\/p/g, '');
  const hasTime = /[hs]/.test(bare);
  // An m beside an hour or a second is a minute.
  const hasDate = /[dy]/.test(bare) || (bare.includes('m') && !hasTime);
  if (hasDate) return hasTime ? 'timestamp' : 'date';
  return hasTime ? 'time' : undefined;
}

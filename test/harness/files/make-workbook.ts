import { makeZip } from './make-zip.ts';

const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';

export interface WorkbookParts {
  sheet: string;
  strings?: string;
  styles?: string;
  book?: string;
}

/** A workbook by its XML, with a prefix as some programs write it. */
export function makeWorkbook({
  sheet,
  strings = '',
  styles = '',
  book = '',
}: WorkbookParts): Buffer {
  const relations = (list: [string, string, string][]) =>
    `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${list
      .map(([id, type, to]) => `<Relationship Id="${id}" Type="${OFFICE}/${type}" Target="${to}"/>`)
      .join('')}</Relationships>`;
  const part = (name: string, inner: string) => `<x:${name} xmlns:x="${MAIN}">${inner}</x:${name}>`;
  return makeZip([
    { name: '_rels/.rels', content: relations([['a', 'officeDocument', '/xl/workbook.xml']]) },
    {
      name: 'xl/workbook.xml',
      content: `<workbook xmlns="${MAIN}" xmlns:q="${OFFICE}">${book}<sheets><sheet name="S" sheetId="1" q:id="s1"/></sheets></workbook>`,
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      content: relations([
        ['s1', 'worksheet', 'worksheets/one.xml'],
        ['s2', 'sharedStrings', 'texts.xml'],
        ['s3', 'styles', '/xl/styles.xml'],
      ]),
    },
    {
      name: 'xl/worksheets/one.xml',
      content: part('worksheet', `<x:sheetData>${sheet}</x:sheetData>`),
    },
    { name: 'xl/texts.xml', content: part('sst', strings) },
    { name: 'xl/styles.xml', content: part('styleSheet', styles) },
  ]);
}

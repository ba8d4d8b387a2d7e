import { posix } from 'node:path';
import { TableError } from '../table/protocol.ts';
import type { Member, OpenZip } from '../zip/open-zip.ts';
import { type DateFormat, readDateFormats } from './date-formats.ts';
import { readWholeXml } from './read-xml.ts';
import { readSharedStrings, SharedStrings } from './shared-strings.ts';

export interface Sheet {
  name: string;
  /** Its XML. */
  read(): AsyncIterable<Buffer>;
}

export interface Workbook {
  sheets: Sheet[];
  strings: SharedStrings;
  /** The formats by index of a cell's style. */
  dateFormats: (DateFormat | undefined)[];
  system: 1900 | 1904;
}

interface Relation {
  id: string;
  /** The last word of its type. */
  type: string;
  /** The path of the part. */
  target: string;
}

/** Reads what belongs to all sheets of a workbook (ECMA-376, Office Open XML). */
export async function openWorkbook(zip: OpenZip): Promise<Workbook> {
  // Parts are named without regard to case.
  const parts = new Map(zip.members.map(member => [member.name.toLowerCase(), member]));
  const find = (path: string): Member | undefined => parts.get(path.toLowerCase());
  const relationsOf = async (path: string): Promise<Relation[]> => {
    const { dir, base } = posix.parse(path);
    const member = find(posix.join(dir, '_rels', `${base}.rels`));
    return member ? readRelations(zip.read(member), dir) : [];
  };
  const office = (await relationsOf('')).find(({ type }) => type === 'officeDocument');
  const book = office && find(office.target);
  if (!book)
    throw new TableError({
      reason: 'there is no workbook in it',
      hint: 'Send an .xlsx or .xlsm file; save an .xls, .xlsb or .ods file as one.',
    });
  const relations = await relationsOf(book.name);
  const { listed, system } = await readBook(zip.read(book));
  const sheets = listed.flatMap(({ name, id }) => {
    const relation = relations.find(one => one.id === id);
    // Charts and macros are sheets too.
    if (relation?.type !== 'worksheet') return [];
    const member = find(relation.target);
    if (!member) throw new TableError({ reason: `the sheet ${JSON.stringify(name)} is not in it` });
    return [{ name, read: () => zip.read(member) }];
  });
  const readPart = (type: string) => {
    const member = find(relations.find(one => one.type === type)?.target ?? '');
    return member && zip.read(member);
  };
  const texts = readPart('sharedStrings');
  const styles = readPart('styles');
  return {
    sheets,
    system,
    strings: texts ? await readSharedStrings(texts) : new SharedStrings(),
    dateFormats: styles ? await readDateFormats(styles) : [],
  };
}

async function readRelations(bytes: AsyncIterable<Buffer>, directory: string): Promise<Relation[]> {
  const found: Relation[] = [];
  await readWholeXml(bytes, {
    part: 'a list of parts',
    onOpen: ({ name, attributes: { Id = '', Type = '', Target = '', TargetMode } }) => {
      if (name !== 'Relationship' || TargetMode === 'External') return;
      const target = Target.startsWith('/') ? Target.slice(1) : posix.join(directory, Target);
      found.push({ id: Id, type: Type.replace(/^.*\//, ''), target });
    },
  });
  return found;
}

interface Book {
  listed: { name: string; id: string }[];
  system: 1900 | 1904;
}

async function readBook(bytes: AsyncIterable<Buffer>): Promise<Book> {
  const book: Book = { listed: [], system: 1900 };
  await readWholeXml(bytes, {
    part: 'the list of sheets',
    onOpen: ({ name, attributes }) => {
      if (name === 'sheet')
        book.listed.push({ name: attributes.name ?? '', id: attributes['r:id'] ?? '' });
      else if (name === 'workbookPr' && /^(1|true|on)$/.test(attributes.date1904 ?? ''))
        book.system = 1904;
    },
  });
  return book;
}

import type { Cell } from '../cells/make-cell-table.ts';
import { TableError } from '../table/protocol.ts';
import type { Sheet, Workbook } from './open-workbook.ts';
import { readXml, unescapeText } from './read-xml.ts';
import { dateOfSerial } from './serial-date.ts';

export interface SheetRow {
  /** Excel's number, from 1. */
  row: number;
  /** The cells that have a value, by column, from 0. */
  cells: Map<number, NonNullable<Cell>>;
}

interface OpenCell {
  column: number;
  type: string;
  style: number;
  /** Its value or inline text; undefined without one. */
  text: string | undefined;
  isFormula: boolean;
}

/** Excel's own limits. */
const MAX_COLUMN = 16_384;
const MAX_ROW = 1_048_576;
const NUMBER = /^-?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/;

/** The rows of a sheet that have a value, in their order. Throws TableError for cells that say no value exactly. */
export async function* readSheet(sheet: Sheet, book: Workbook): AsyncGenerator<SheetRow> {
  let rows: SheetRow[] = [];
  let current: SheetRow = { row: 0, cells: new Map() };
  let cell: OpenCell | undefined;
  let column = -1;
  let reading: 'v' | 't' | undefined;
  let isPhonetic = false;
  const refuse = (reason: string, at = column): never => {
    throw new TableError({
      row: current.row,
      column: at >= 0 ? nameOf(at) : undefined,
      reason: `sheet ${JSON.stringify(sheet.name)}: ${reason}`,
    });
  };
  const xml = readXml(sheet.read(), {
    part: `the sheet ${JSON.stringify(sheet.name)}`,
    onOpen: ({ name, attributes: { r, t = 'n', s = '0' } }) => {
      if (name === 'row') {
        const row = r === undefined ? current.row + 1 : Number(r);
        if (!Number.isInteger(row) || row <= current.row || row > MAX_ROW)
          refuse(`after this row comes row ${String(r).slice(0, 20)}`, -1);
        current = { row, cells: new Map() };
        column = -1;
      } else if (name === 'c') {
        const next = r === undefined ? column + 1 : columnOf(r);
        if (next === undefined || next <= column || next >= MAX_COLUMN)
          return refuse(`after this cell comes ${String(r).slice(0, 20)}`);
        column = next;
        cell = { column, type: t, style: Number(s), text: undefined, isFormula: false };
      } else if (name === 'rPh') isPhonetic = true;
      else if (cell && name === 'f') cell.isFormula = true;
      else if (cell && (name === 'v' || (name === 't' && !isPhonetic))) {
        reading = name;
        cell.text ??= '';
      }
    },
    onText: text => {
      if (reading && cell) cell.text += text;
    },
    onClose: name => {
      if (name === reading) reading = undefined;
      else if (name === 'rPh') isPhonetic = false;
      else if (name === 'c' && cell) {
        const value = cellValue(cell, book, refuse);
        if (value) current.cells.set(cell.column, value);
        cell = undefined;
      } else if (name === 'row' && current.cells.size > 0) rows.push(current);
    },
  });
  for await (const _ of xml) {
    yield* rows;
    rows = [];
  }
}

function cellValue(
  { type, style, text, isFormula }: OpenCell,
  book: Workbook,
  refuse: (reason: string) => never,
): Cell {
  // Programs that do not calculate write an empty result or none; a text may be empty, its number may not.
  if (text === undefined || (text.trim() === '' && (type === 'n' || type === 's')))
    return isFormula
      ? refuse(
          'a formula has no stored result: open the workbook in a spreadsheet program, and save it',
        )
      : null;
  switch (type) {
    case 's': {
      const shared = /^\d+$/.test(text) ? book.strings.get(Number(text)) : undefined;
      return toText(shared ?? refuse('its text is not in the list of texts'));
    }
    case 'str':
    case 'inlineStr':
      return toText(unescapeText(text));
    case 'e':
    case 'd':
      return toText(text);
    case 'b':
      return {
        kind: 'boolean',
        text: text === '1' ? 'true' : text === '0' ? 'false' : refuse('it is no boolean'),
      };
    case 'n': {
      if (!NUMBER.test(text)) return refuse(`${JSON.stringify(text.slice(0, 50))} is no number`);
      const format = book.dateFormats[style];
      if (!format) return { kind: 'number', text };
      const date = dateOfSerial(Number(text), { format, system: book.system });
      if (date === null) return null;
      return { kind: 'text', text: date ?? refuse(`there is no day ${text}`) };
    }
    default:
      return refuse(`its type ${JSON.stringify(type.slice(0, 20))} is unknown`);
  }
  function toText(value: string): Cell {
    if (/[\0\p{Surrogate}]/u.test(value))
      refuse('its text has a NUL character or half a surrogate pair');
    return { kind: 'text', text: value };
  }
}

/** The column of a reference such as AB12, from 0. */
function columnOf(reference: string): number | undefined {
  const letters = /^([A-Z]{1,3})\d*$/.exec(reference)?.[1];
  if (letters === undefined) return undefined;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

/** AB for 27. */
function nameOf(column: number): string {
  const rest = Math.floor(column / 26);
  return (rest > 0 ? nameOf(rest - 1) : '') + String.fromCharCode(65 + (column % 26));
}

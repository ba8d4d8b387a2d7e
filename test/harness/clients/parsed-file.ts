import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileParserName, PARSERS } from '../../../shared/uploads/parsers.ts';
import { readFile } from '../../../workers/parsers/read-file.ts';
import type { MadeFile } from '../../../workers/parsers/table/protocol.ts';
import { readColumns } from './parsed-table.ts';

export interface ParsedFile extends MadeFile {
  /** The JSON text of each value of a table, by name and type of the column, as the API answers it. */
  json: Record<string, string[]>;
}

interface Given {
  parser: FileParserName;
  content: string | Uint8Array;
  parameters?: object;
  /** LIMIT_EXPANDED_BYTES. */
  expanded?: number;
}

/** Parses a file of any format in this process, in a new folder below the given one; what it makes, by name. */
export async function parseFile(
  folder: string,
  { parser, content, parameters = {}, expanded = 1 << 30 }: Given,
): Promise<Record<string, ParsedFile>> {
  const scratch = await mkdtemp(join(folder, 'parse-'));
  const input = join(scratch, 'upload');
  await writeFile(input, content);
  const made = await readFile(
    {
      kind: 'file',
      parser,
      scratch,
      input,
      expanded,
      memory: 2 ** 30,
      threads: 2,
      parameters: PARSERS[parser].parameters.parse(parameters),
      output: join(scratch, 'table.parquet'),
    },
    () => {},
  );
  const parsed: Record<string, ParsedFile> = {};
  for (const file of made) {
    const { columns = [], rows = 0 } = file;
    const json = file.kind === 'table' ? await readColumns(file.path, { columns, rows }) : [];
    parsed[file.name] = {
      ...file,
      json: Object.fromEntries(
        columns.map(({ name, type }, i) => [`${name} ${type}`, json[i] ?? []]),
      ),
    };
  }
  return parsed;
}

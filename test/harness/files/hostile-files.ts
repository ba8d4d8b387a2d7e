import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type FileParserName, PARSERS } from '../../../shared/uploads/parsers.ts';
import type { MadeFile } from '../../../workers/parsers/table/protocol.ts';
import { runTableChild } from '../../../workers/parsers/table/run-child.ts';
import { giveToDecoder } from '../../../workers/sandbox/scratch-dir.ts';
import { parseFile } from '../clients/parsed-file.ts';

/** A file cut at these fractions of its length, and with numbers of bytes changed at seeded random places. */
export function damage(
  content: Buffer,
  { seed, times }: { seed: number; times: number },
): Buffer[] {
  let state = seed;
  const random = (below: number) => {
    // The minimal standard generator of Park and Miller.
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  const cut = [0.01, 0.3, 0.7, 0.99].map(share =>
    content.subarray(0, Math.ceil(content.length * share)),
  );
  const changed = Array.from({ length: times }, () => {
    const bytes = Buffer.from(content);
    for (let n = 1 + random(4); n > 0; n--) bytes[random(bytes.length)] = random(256);
    return bytes;
  });
  return [...cut, ...changed];
}

interface Hostile {
  parser: FileParserName;
  content: Uint8Array;
  parameters?: object;
  memory?: number;
  seconds?: number;
}

/** Parses a file in the confined child, as a worker does. */
export async function parseConfined(
  folder: string,
  { parser, content, parameters = {}, memory = 512 << 20, seconds = 20 }: Hostile,
): Promise<MadeFile[]> {
  const scratch = await mkdtemp(join(folder, 'hostile-'));
  const input = join(scratch, 'upload');
  await writeFile(input, content);
  await giveToDecoder(scratch);
  await giveToDecoder(input);
  return runTableChild(
    {
      kind: 'file',
      parser,
      scratch,
      input,
      expanded: 1 << 30,
      parameters: PARSERS[parser].parameters.parse(parameters),
      output: join(scratch, 'table.parquet'),
    },
    { memory, seconds, keepFree: 0, onProgress: () => {}, signal: new AbortController().signal },
  );
}

/** The same in this process, for readers that are JavaScript alone. */
export async function expectReadOrRefused(
  folder: string,
  given: Parameters<typeof parseFile>[1],
): Promise<void> {
  await parseFile(folder, given).catch((error: Error) => {
    expect(error.name, String(error.stack)).toBe('TableError');
  });
}

/** Parses a damaged file, which is an error of the file or what is still in it; undefined for an error. */
export async function expectBounded(
  folder: string,
  given: Hostile,
): Promise<MadeFile[] | undefined> {
  return parseConfined(folder, given).catch((error: Error & { code?: string }) => {
    const isOfFile = error.name === 'TableError' || error.code === 'parse_failed';
    expect(isOfFile, String(error.stack)).toBe(true);
    return undefined;
  });
}

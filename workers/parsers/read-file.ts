/// <reference types="vite/types/importMeta.d.ts" />
import { checkKind } from './check-kind.ts';
import { expandFile } from './expand/expand-file.ts';
import type { FileRequest, MadeFile, Reader } from './table/protocol.ts';

/** Loads the default export of a file in workers/parsers/formats. The bundler and vitest list them. */
const readers = import.meta.glob<Reader<FileRequest['parser']>>(
  ['./formats/*.ts', '!./formats/*.test.ts'],
  { import: 'default' },
);

/** Reads a file, expanded if compressed, by its format's reader, which is in the file of that name. */
export async function readFile(
  request: FileRequest,
  onProgress: (share: number) => void,
): Promise<MadeFile[]> {
  const { path, expanded } = await expandFile(request);
  await checkKind(path, request.parser);
  const reader = await readers[`./formats/${request.parser}.ts`]?.();
  if (!reader) throw new Error(`workers/parsers/formats/${request.parser}.ts is missing`);
  return reader({ ...request, input: path, expanded }, onProgress);
}

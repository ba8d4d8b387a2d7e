import { expandFile } from '../expand/expand-file.ts';
import type { FileRequest, MadeFile, Reader } from '../table/protocol.ts';
import { checkKind } from './check-kind.ts';

/** Sources end in .ts, the compiled program in .js. */
const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'));

/** Reads a file, expanded if compressed, by its format's reader, which is in the file of that name here. */
export async function readFile(
  request: FileRequest,
  onProgress: (share: number) => void,
): Promise<MadeFile[]> {
  const { path, expanded } = await expandFile(request);
  await checkKind(path, request.parser);
  const module = await import(new URL(`${request.parser}${extension}`, import.meta.url).href);
  const reader: Reader<FileRequest['parser']> = module.default;
  return reader({ ...request, input: path, expanded }, onProgress);
}

import { unwrap } from '../../../clients/typescript/src/api.ts';
import { type Chunk, toLines } from '../../../clients/typescript/src/lines.ts';
import type { Windlass } from '../../../clients/typescript/src/windlass.ts';
import { connect } from '../connect.ts';
import { followToEnd } from '../follow-to-end.ts';
import { printChunks, printLines } from '../print-output.ts';

/** `windlass logs`: what a job has printed; what it will print too, with `follow`. */
export async function showLogs(
  id: string,
  { follow, json }: { follow?: boolean; json?: boolean },
): Promise<void> {
  const windlass = await connect();
  const job = await unwrap(windlass.api.GET('/api/jobs/{id}', { params: { path: { id } } }));
  if (follow || job.finished !== null) {
    // Both streams in the order in which they came.
    process.exitCode = await followToEnd(windlass, Promise.resolve(id), { json });
    return;
  }
  for (const stream of ['stdout', 'stderr'] as const) {
    const chunks = readSoFar(windlass, id, stream);
    await (json ? printLines(toLines(chunks)) : printChunks(chunks));
  }
}

async function* readSoFar(
  { api }: Windlass,
  id: string,
  stream: 'stdout' | 'stderr',
): AsyncGenerator<Chunk> {
  const params = { path: { id }, query: { stream } };
  const pieces = await unwrap(api.GET('/api/jobs/{id}/output', { params, parseAs: 'stream' }));
  let offset = 0;
  // Nothing has been printed yet where there is no body.
  for await (const bytes of (pieces ?? []) as AsyncIterable<Chunk['bytes']>) {
    yield { stream, offset, bytes };
    offset += bytes.length;
  }
}

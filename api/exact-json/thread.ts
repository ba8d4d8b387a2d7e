import { parentPort } from 'node:worker_threads';
import { readExactly, type Shape } from './read-exactly.ts';

/** The other end of thread-reader.ts. */
parentPort?.on('message', ({ id, bytes, shape, maxDepth }: Message) =>
  parentPort?.postMessage({ id, exact: readExactly(bytes, shape, maxDepth) }),
);

interface Message {
  id: number;
  bytes: Uint8Array;
  shape: Shape;
  maxDepth: number;
}

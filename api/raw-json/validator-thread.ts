import { parentPort } from 'node:worker_threads';
import { type BodyShape, validateRawJson } from './validate-raw-json.ts';

/** The thread of threaded-validator.ts. */
parentPort?.on('message', ({ id, bytes, shape, maxDepth }: Message) =>
  parentPort?.postMessage({ id, exact: validateRawJson(bytes, shape, maxDepth) }),
);

interface Message {
  id: number;
  bytes: Uint8Array;
  shape: BodyShape;
  maxDepth: number;
}

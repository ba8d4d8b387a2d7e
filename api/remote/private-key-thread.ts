import { parentPort, workerData } from 'node:worker_threads';
import { parsePrivateKey } from './private-key.ts';

/** The thread of threaded-key-parser.ts. */
const { privateKey, passphrase } = workerData as { privateKey: string; passphrase?: string };
parentPort?.postMessage(parsePrivateKey(privateKey, { passphrase, rewrite: true }));

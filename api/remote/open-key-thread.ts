import { parentPort, workerData } from 'node:worker_threads';
import { openKeyHere } from './open-key-here.ts';

/** The other end of open-key.ts. */
const { privateKey, passphrase } = workerData as { privateKey: string; passphrase?: string };
parentPort?.postMessage(openKeyHere(privateKey, { passphrase, rewrite: true }));

import { hostname } from 'node:os';
import { newId } from '../ids.ts';

/** A new id of this process as a worker: host, process and start, of letters, digits, dots and hyphens. */
export function newWorkerId(): string {
  return `${hostname().replace(/[^A-Za-z0-9.-]/g, '-')}-${process.pid}-${newId().slice(-6)}`;
}

/** The process of a worker, on its host. */
export function pidOfWorker(id: string): number {
  return Number(/-(\d+)-[0-9a-z]{6}$/.exec(id)?.[1]);
}

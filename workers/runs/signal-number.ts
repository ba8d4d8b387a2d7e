import { constants } from 'node:os';

/** Of a signal by its name, with or without its SIG (RFC 4254, 6.10 leaves it out); 0 where this system has none of it. */
export function signalNumber(name: string): number {
  const key = `SIG${name.replace(/^SIG/, '')}` as keyof typeof constants.signals;
  return constants.signals[key] ?? 0;
}

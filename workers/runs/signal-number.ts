import { constants } from 'node:os';

/** The number of a signal by its name, with or without SIG (RFC 4254, 6.10 omits it); 0 if this system has no such signal. */
export function signalNumber(name: string): number {
  const key = `SIG${name.replace(/^SIG/, '')}` as keyof typeof constants.signals;
  return constants.signals[key] ?? 0;
}

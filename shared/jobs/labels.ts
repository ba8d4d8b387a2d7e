import type { JobKind, Payload } from './catalog.ts';

const MAX_LENGTH = 200;

/** A job in one line of at most 200 characters, for people who look through lists. */
const LABELS: { [K in JobKind]?: (payload: Payload<K>) => string } = {
  'scan-host': ({ address, port }) => `${address}:${port}`,
  command: ({ command }) => command,
  // The label of a script is what comes after its directives.
  batch: ({ command, script = '' }) => command ?? script.replace(/^#.*$/gm, ''),
  video: ({ images, pattern, type }) =>
    images
      ? `${images.length} ${images.length === 1 ? 'frame' : 'frames'}, ${type}`
      : `${pattern}, ${type}`,
  browse: ({ path }) => path,
  file: ({ path }) => path,
  'write-file': ({ path }) => path,
  'remove-file': ({ path }) => path,
  copy: ({ path }) => path,
};

/** Null for kinds whose payload says nothing: whoever starts such a job may give its label. */
export function labelOf<K extends JobKind>(kind: K, payload: Payload<K>): string | null {
  const label = LABELS[kind]?.(payload);
  return label === undefined ? null : oneLine(label);
}

/** The first line that is not blank, without control characters, cut between two characters. */
export function oneLine(text: string): string {
  const line =
    text
      .slice(0, 10 * MAX_LENGTH)
      .split(/[\r\n]/)
      .find(part => part.trim() !== '') ?? '';
  const [...characters] = line.replace(/\p{Cc}/gu, ' ').trim();
  return characters
    .slice(0, MAX_LENGTH)
    .join('')
    .replace(/\p{Surrogate}/gu, '\ufffd');
}

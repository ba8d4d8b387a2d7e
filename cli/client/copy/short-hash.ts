import { createHash } from 'node:crypto';

/** Hexadecimal digits that tell what is copied, its states and machines apart in the names of files. */
export const shortHash = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 16);

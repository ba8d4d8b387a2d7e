import { hostText } from './host-text.ts';

/** A path on a host. */
export const absolutePath = hostText({ max: 4096 }).regex(/^\//, 'must be an absolute path');

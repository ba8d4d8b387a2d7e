import type { Response } from 'express';
import { z } from 'zod';
import { contentPolicy } from './content-policy.ts';

/** A query for what browsers play: with it they save it instead. */
export const downloadQuery = {
  download: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe('A name of a file: browsers save it so, instead of playing it.'),
};

/**
 * Content-Disposition of what browsers save (RFC 6266), under a name without folders (RFC 8187). res.attachment() would
 * drop what precedes the last slash of a name, and set Content-Type.
 */
export function attachment(name: string): string {
  const plain = name.replace(/[/\\]/g, '_');
  const escaped = encodeURIComponent(plain).replace(
    /['()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const ascii = plain.replace(/[^\w .-]/g, '_');
  return `attachment; filename="${ascii}"; filename*=UTF-8''${escaped}`;
}

/** Keeps bytes that users sent from being a page of this origin: browsers save them, and show them in a sandbox if at all. */
export function setAttachment(res: Response, name: string): void {
  res
    .set('Content-Disposition', attachment(name))
    .set('Content-Security-Policy', contentPolicy('sandbox', "default-src 'none'"))
    .set('X-Content-Type-Options', 'nosniff');
}

import type { Response } from 'express';
import { contentPolicy } from '../http/content-policy.ts';

/**
 * Keeps bytes that users sent from being a page of this origin: browsers save them (RFC 6266) under a name without folders
 * (RFC 8187), and show them in a sandbox if at all. Not res.attachment(), which drops what precedes the last slash of a
 * name and sets Content-Type.
 */
export function setAttachment(res: Response, name: string): void {
  const plain = name.replace(/[/\\]/g, '_');
  const escaped = encodeURIComponent(plain).replace(
    /['()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const ascii = plain.replace(/[^\w .-]/g, '_');
  res
    .set('Content-Disposition', `attachment; filename="${ascii}"; filename*=UTF-8''${escaped}`)
    .set('Content-Security-Policy', contentPolicy('sandbox', "default-src 'none'"))
    .set('X-Content-Type-Options', 'nosniff');
}

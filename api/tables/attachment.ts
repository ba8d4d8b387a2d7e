import type { Response } from 'express';

/**
 * What users sent is never a page of this origin: saved rather than shown (RFC 6266), under a name in RFC 8187's form
 * that holds no folder, and without rights where a browser shows it all the same.
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
    .set('Content-Security-Policy', "sandbox; default-src 'none'")
    .set('X-Content-Type-Options', 'nosniff');
}

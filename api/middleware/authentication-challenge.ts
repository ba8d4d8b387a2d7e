import type { Exchange } from '../http/exchange.ts';
import { isForeignPage } from '../http/same-origin.ts';

/** As Fetch Metadata names what asks: pictures and videos of a page. */
const MEDIA = new Set(['audio', 'image', 'track', 'video']);

/**
 * The WWW-Authenticate of a 401 (RFC 9110, 15.5.2). For a page's scripts, pictures and videos `Bearer`: browsers show no
 * dialog for it, whose password would outlive the page's login.
 */
export function challengeFor({ req, res }: Exchange): string {
  const isScript = req.get('X-Requested-With') !== undefined || isForeignPage(res);
  const isMedia = MEDIA.has(req.get('Sec-Fetch-Dest') ?? '');
  return isScript || isMedia ? 'Bearer' : 'Basic realm="Windlass", charset="UTF-8"';
}

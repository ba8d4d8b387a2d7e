import type { Request, Response } from 'express';
import { isForeignPage } from './allow-origins.ts';

/** The WWW-Authenticate of a 401 (RFC 9110, 15.5.2). For a page's script `Bearer`: browsers show no dialog for it. */
export function challengeFor(req: Request, res: Response): string {
  const isScript = req.get('X-Requested-With') !== undefined || isForeignPage(res);
  return isScript ? 'Bearer' : 'Basic realm="Windlass", charset="UTF-8"';
}

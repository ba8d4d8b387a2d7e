import type { RequestHandler } from 'express';

const METHODS = new Set(['HEAD', 'PATCH', 'DELETE']);

/**
 * tus 1.0.0, X-HTTP-Method-Override: for clients behind proxies that pass GET and POST only. Must come before whatever
 * depends on the method.
 */
export function overrideMethod(): RequestHandler {
  return (req, _res, next) => {
    const method = req.get('X-HTTP-Method-Override')?.toUpperCase();
    if (req.method === 'POST' && method !== undefined && METHODS.has(method)) req.method = method;
    next();
  };
}

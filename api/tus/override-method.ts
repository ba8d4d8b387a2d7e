import type { RequestHandler } from 'express';

const METHODS = new Set(['HEAD', 'PATCH', 'DELETE']);

/**
 * "The X-HTTP-Method-Override request header MUST be a string which MUST be interpreted as the request's method by the
 * Server, if the header is presented." It is for clients behind proxies that let nothing but GET and POST through; must
 * come before whatever depends on the method.
 */
export function overrideMethod(): RequestHandler {
  return (req, _res, next) => {
    const method = req.get('X-HTTP-Method-Override')?.toUpperCase();
    if (req.method === 'POST' && method !== undefined && METHODS.has(method)) req.method = method;
    next();
  };
}

import { parse } from 'node:querystring';
import type { RequestHandler } from 'express';
import type { Exchange } from '../http/exchange.ts';

const NAME = 'link';

/**
 * Takes `link=…` out of the address of a GET or HEAD before anything else sees it: nothing can log it then, and no operation
 * has to know of it. authenticate() uses it.
 */
export function takeLink(): RequestHandler {
  return (req, res, next) => {
    const at = req.url.indexOf('?');
    if (at >= 0 && (req.method === 'GET' || req.method === 'HEAD')) take({ req, res }, at);
    next();
  };
}

function take({ req, res }: Exchange, at: number): void {
  const pairs = req.url.slice(at + 1).split('&');
  const links = pairs.map(pair => parse(pair)[NAME]?.toString());
  const found = links.filter(value => value !== undefined);
  if (found.length === 0) return;
  // Where there are several, none counts: an empty link opens nothing.
  res.locals.link = found.length === 1 ? found[0] : '';
  const kept = pairs.filter((_, index) => links[index] === undefined).join('&');
  req.url = req.url.slice(0, at) + (kept === '' ? '' : `?${kept}`);
  req.originalUrl = req.url;
  // Referer would pass the link on with the requests of a page that it shows.
  res.set('Referrer-Policy', 'no-referrer');
}

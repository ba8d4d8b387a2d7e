import type { Express } from 'express';
import type { Config } from '../../shared/settings/config.ts';

type Address = Pick<Config, 'PUBLIC_URL' | 'HOST' | 'PORT'>;

/** The service's address as clients see it, without a slash at its end. Never taken from a request. */
export function publicUrl({ PUBLIC_URL, HOST, PORT }: Address): string {
  const host = HOST.includes(':') ? `[${HOST}]` : HOST;
  return (PUBLIC_URL ?? `http://${host}:${PORT}`).replace(/(?<!\/)\/+$/, '');
}

/** The path of that address, such as `/windlass`, which the proxy strips from requests; most have none. */
export function publicPath(config: Address): string {
  return new URL(publicUrl(config)).pathname.replace(/(?<!\/)\/+$/, '');
}

/** Makes every `res.location('/…')` name the path as clients see it. */
export function locateBelow(app: Express, path: string): void {
  if (path === '') return;
  const { location } = app.response;
  app.response.location = function locate(url) {
    return location.call(this, url.startsWith('/') ? `${path}${url}` : url);
  };
}

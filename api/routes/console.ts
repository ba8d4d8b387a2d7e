import type { Request } from 'express';
import { notFound, WindlassError } from '../../shared/errors/errors.ts';
import { packageRoot } from '../../shared/process/package-root.ts';
import type { Config } from '../../shared/settings/config.ts';
import { type ConsoleFile, type ConsoleFiles, readConsoleFiles } from '../console/console-files.ts';
import { matchesEntityTag } from '../http/conditional-requests.ts';
import { contentPolicy } from '../http/content-policy.ts';
import type { Exchange } from '../http/exchange.ts';
import { publicPath } from '../http/public-url.ts';
import { routes } from '../http/routes.ts';

const FOLDER = new URL('dist/console/', packageRoot);
const YEAR_SECONDS = 31_536_000;
/**
 * Nothing from elsewhere but videos of the object store where that sends them, nothing inline, and no text that becomes a
 * script or markup (Trusted Types).
 */
const policyOf = (config: Config) =>
  contentPolicy(
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // Pictures of a host are shown as the bytes that were read.
    "img-src 'self' blob:",
    ["media-src 'self'", ...storeOrigin(config)].join(' '),
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  );

function storeOrigin(config: Config): string[] {
  const endpoint = config.S3_PUBLIC_ENDPOINT ?? config.S3_ENDPOINT;
  return config.VIDEO_DELIVERY === 'redirect' && endpoint ? [new URL(endpoint).origin] : [];
}

/** The web console: a page for people, which calls the API as any program does. It shows nothing without a login. */
export default routes('public', (router, { config }) => {
  const policy = policyOf(config);
  // Read at the first request. What is not built yet, or just being built, is read again.
  let built: ConsoleFiles | undefined;
  let reading: Promise<ConsoleFiles> | undefined;
  const read = async () => {
    if (built?.has('index.html')) return built;
    reading ??= readConsoleFiles(FOLDER, publicPath(config)).finally(() => {
      reading = undefined;
    });
    built = await reading;
    return built;
  };

  router.use('/console', async (req, res) => {
    refuseChanges(req);
    if (!req.originalUrl.startsWith('/console/')) {
      res.redirect(308, `/console/${req.originalUrl.slice('/console'.length)}`);
      return;
    }
    const files = await read();
    const name = req.path.slice(1);
    const file = files.get(name);
    // Its name has the hash of its contents.
    if (file && name.startsWith('assets/')) return sendFile({ req, res }, file, YEAR_SECONDS);
    if (file) return sendFile({ req, res }, file);
    // Files of an older build go to a page that was open before.
    if (name.startsWith('assets/'))
      throw notFound('the console has no such file any more.', 'Load the page again.');
    const page = files.get('index.html');
    if (!page) throw notFound('the console is not built.', 'Run "npm run build" on the server.');
    // Every other path is a state of the page, which reads it itself.
    res.set('Content-Security-Policy', policy);
    sendFile({ req, res }, page);
  });
});

/** A file without an age is requested each time, and answered 304 while it is the same. */
function sendFile({ req, res }: Exchange, file: ConsoleFile, seconds?: number): void {
  const useGzip = file.gzip !== undefined && req.acceptsEncodings(['gzip', 'identity']) === 'gzip';
  const tag = `"${file.tag}${useGzip ? '-gzip' : ''}"`;
  res
    .type(file.type)
    .vary('Accept-Encoding')
    .set('ETag', tag)
    .set('Cache-Control', seconds ? `public, max-age=${seconds}, immutable` : 'no-cache');
  if (matchesEntityTag(req.get('If-None-Match'), tag)) return void res.status(304).end();
  if (useGzip) res.set('Content-Encoding', 'gzip');
  res.send(useGzip ? file.gzip : file.bytes);
}

function refuseChanges({ method }: Request): void {
  if (method === 'GET' || method === 'HEAD') return;
  throw new WindlassError('method_not_allowed', {
    detail: `${method} cannot be used here.`,
    hint: 'The console is pages; the operations are below /api.',
    headers: { Allow: 'GET, HEAD' },
  });
}

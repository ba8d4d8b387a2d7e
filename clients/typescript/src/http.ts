import { backoff, LONGEST_TIMER, retryAfter, sleep } from './backoff.ts';
import { errorOf, WindlassError } from './error.ts';
import { isJson, requireNoPage, requireOrigin } from './foreign-answer.ts';

export interface ConnectionOptions {
  /** Where the service is, such as `https://windlass.example.org`; its path too, if it has one. In a page `/` is its own. */
  url: string;
  /** An API token, or what gives one: it is asked before each request. */
  token?: (string | (() => string | Promise<string>)) | undefined;
  /** Basic authentication, for programs. Without it and without a token the page's cookies are used. */
  user?: string | undefined;
  password?: string | undefined;
  /**
   * For so many seconds a request is sent again where that is safe and may help. Unless given 120, and 10 until the service has
   * answered once.
   */
  patience?: number | undefined;
  /** Told before a request is sent again, and before an event stream is opened again. */
  onRetry?: ((retry: { error: WindlassError; seconds: number }) => void) | undefined;
  /** Instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** What a request may say beside what `fetch` takes. */
export interface Sending {
  signal?: AbortSignal | null | undefined;
  /** An answer must begin within so many ms, and one of JSON end. */
  timeoutMs?: number | undefined;
  /**
   * Whether the request may be sent twice; `false` also where its body is a stream. Default: GET and HEAD, and what has
   * an Idempotency-Key.
   */
  isRepeatable?: boolean | undefined;
  /** In seconds, instead of the connection's. */
  patience?: number | undefined;
  /** Told where there was no answer of the service, which may have begun what was asked for. */
  onLost?: (() => void) | undefined;
}

/** The POSTs that the service answers with the same job when they are repeated under their key. */
export const STARTS_WORK =
  /\/api\/(hosts\/-\/scan|remotes(\/launch|\/[^/]+\/(answers|batch|login|videos))?|jobs\/[^/]+\/retry|uploads\/[^/]+\/finished)$/;
/** These write nothing and have no body. */
const SAFE = ['GET', 'HEAD'];
/** The service refuses these before it has done anything. */
const REFUSED = [429];
/** Answers of an overloaded or stopping service, or of a proxy before it. */
const TRANSIENT = [408, 502, 503, 504];
/** Statuses from here on are a proxy's alone, such as 522 of Cloudflare's, which did not reach the service. */
const FIRST_OF_PROXIES = 520;
const isTransient = (status: number) => TRANSIENT.includes(status) || status >= FIRST_OF_PROXIES;
/** Whether there was no answer, or one of these. */
export const isPassing = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && (error.code === 'unreachable' || isTransient(error.status));

/** An answer that the service gives at once comes within so long, or the connection is dead. */
export const ANSWER_MS = 60_000;

/** Who has no end of patience asks again after so many ms, whatever `Retry-After` says. */
const LONGEST_WAIT = 60_000;

/** In seconds: the address of a service that has never answered may be wrong. */
const FIRST_CONTACT = 10;

interface NodeError {
  code?: string;
}

/** Sends requests with the user's credentials, and again where that is safe and may help. */
export class Http {
  /** The absolute address of the service, without a slash at its end. */
  readonly base: string;
  readonly #options: ConnectionOptions;
  #wasReached = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const page = (globalThis as { location?: { href: string } }).location?.href;
    if (!isAddress(options.url, page)) throw noUrl(options.url);
    const { origin, pathname } = new URL(options.url, page);
    this.base = `${origin}${pathname.replace(/\/+$/, '')}`;
  }

  /**
   * For openapi-fetch, whose calls may say `timeoutMs`, without which they wait as long as the service does, `isRepeatable` and
   * `onLost`.
   */
  readonly fetch = async (request: Request): Promise<Response> => {
    const { signal } = request;
    const { timeoutMs, isRepeatable, onLost } = request as Sending;
    const sending = { signal, timeoutMs, isRepeatable, onLost, key: keyFor(request) };
    return this.#send(() => request.clone(), sending);
  };

  /** An answer of the service below 400. Throws WindlassError for others, and where none came. */
  async request(path: string, init: RequestInit, sending: Sending = {}): Promise<Response> {
    const make = () => new Request(`${this.base}${path}`, init);
    const response = await this.#send(make, sending);
    // 304 is none: it answers a condition.
    if (response.status < 400) return requireNoPage(response);
    throw await readError(response);
  }

  /** Waits before the next attempt of something that is repeated; says so. */
  async pause(
    attempt: number,
    { error, signal }: { error: WindlassError; signal?: AbortSignal },
  ): Promise<void> {
    const ms = backoff(attempt);
    this.#options.onRetry?.({ error, seconds: ms / 1_000 });
    await sleep(ms, signal);
  }

  async #send(
    make: () => Request,
    { signal, key, ...sending }: Sending & { key?: string },
  ): Promise<Response> {
    const begun = performance.now();
    const isOver = (wait: number) =>
      performance.now() + wait > begun + 1_000 * (sending.patience ?? this.#patience);
    const hasEnd = (sending.patience ?? this.#patience) < Infinity;
    for (let attempt = 0; ; attempt++) {
      signal?.throwIfAborted();
      const request = make();
      const isRepeatable =
        sending.isRepeatable ?? (SAFE.includes(request.method) || key !== undefined);
      if (key !== undefined) request.headers.set('Idempotency-Key', key);
      await this.#authorize(request);
      let error: WindlassError;
      let wait = backoff(attempt);
      try {
        const response = await this.#once(request, { signal, ...sending });
        this.#wasReached = true;
        const mayRepeat =
          (sending.isRepeatable !== false && REFUSED.includes(response.status)) ||
          (isRepeatable && isTransient(response.status));
        const asked = retryAfter(response) ?? 0;
        wait = Math.max(hasEnd ? asked : Math.min(asked, LONGEST_WAIT), wait);
        if (!mayRepeat || isOver(wait)) return response;
        if (!REFUSED.includes(response.status)) sending.onLost?.();
        error = await readError(response);
      } catch (cause) {
        signal?.throwIfAborted();
        if (cause instanceof WindlassError) throw cause;
        error = unreachable(request.url, cause);
        const mayRepeat =
          !speaksNoTls(cause) &&
          !isUntrusted(cause) &&
          (isRepeatable || (sending.isRepeatable !== false && isUnsent(cause)));
        if (!mayRepeat || isOver(wait)) throw error;
        sending.onLost?.();
      }
      this.#options.onRetry?.({ error, seconds: wait / 1_000 });
      await sleep(wait, signal);
    }
  }

  get #patience(): number {
    return this.#options.patience ?? (this.#wasReached ? 120 : FIRST_CONTACT);
  }

  async #once(request: Request, { signal, timeoutMs = Infinity }: Sending): Promise<Response> {
    const timeout = new AbortController();
    const late = () => timeout.abort(new Error(`no answer within ${timeoutMs / 1_000} s`));
    const timer =
      timeoutMs < Infinity ? setTimeout(late, Math.min(timeoutMs, LONGEST_TIMER)) : undefined;
    try {
      const either = signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal;
      const send = this.#options.fetch ?? globalThis.fetch;
      // What is sent may be secret, and another server's answer no proof. The store of videos is asked without credentials.
      const redirect = SAFE.includes(request.method) ? 'follow' : 'manual';
      const response = await send(request, { signal: either, redirect });
      return await readJson(requireOrigin(response, this.base));
    } finally {
      clearTimeout(timer);
    }
  }

  async #authorize({ headers }: Request): Promise<void> {
    const { token, user, password = '' } = this.#options;
    if (token !== undefined)
      headers.set('Authorization', `Bearer ${typeof token === 'string' ? token : await token()}`);
    else if (user !== undefined)
      headers.set('Authorization', `Basic ${toBase64(`${user}:${password}`)}`);
    // A browser asks for a password by itself where a script is refused, unless the service knows that it is one.
    else headers.set('X-Requested-With', 'windlass');
  }
}

/** An absolute one, or in a page one below its own. */
const isAddress = (url: string | undefined, page: string | undefined): url is string =>
  !!url && URL.canParse(url, page) && /^https?:$/.test(new URL(url, page).protocol);

const noUrl = (url: string | undefined) =>
  new WindlassError({
    code: 'no_url',
    detail: `"${url ?? ''}" is no address.`,
    hint: 'It begins with http:// or https://.',
  });

/** The error of an answer, whose body is read for it. */
async function readError(response: Response): Promise<WindlassError> {
  return errorOf(response, await response.json().catch(() => undefined));
}

const UNANSWERED =
  'Is the address right, the service up, and a page of an origin that may call it?';
const UNTRUSTED =
  "If an authority of your own signed its certificate, set NODE_EXTRA_CA_CERTS to a file with that authority's.";

/** The error of no answer, or of one that broke off. */
export function unreachable(url: string, cause: unknown): WindlassError {
  const why =
    cause instanceof Error ? (cause.cause instanceof Error ? cause.cause : cause) : undefined;
  const said = speaksNoTls(cause) ? 'it speaks no TLS' : why?.message || cause;
  const detail = `No answer from ${new URL(url).host}: ${said}.`;
  return new WindlassError(
    {
      code: 'unreachable',
      detail,
      hint: isUntrusted(cause) ? UNTRUSTED : UNANSWERED,
    },
    { cause },
  );
}

/** Whether what answers https is no TLS, as on a port of http: it will not be any. Node tells, and a browser does not. */
export const speaksNoTls = (cause: unknown): boolean =>
  /^ERR_SSL_(WRONG_V|PACKET)/.test(codeOf(cause));

/** Whether its certificate is refused, which Node tells and a browser does not: it will be again. */
const isUntrusted = (cause: unknown): boolean =>
  /^(CERT_|(DEPTH_ZERO_)?SELF_SIGNED_|ERR_TLS_CERT_|UNABLE_TO_)/.test(codeOf(cause));

/** Whether there was no connection, which Node tells and a browser does not. */
const isUnsent = (cause: unknown): boolean =>
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/.test(codeOf(cause));

const codeOf = (error: unknown): string =>
  ((error as Error | undefined)?.cause as NodeError | undefined)?.code ?? '';

function keyFor({ method, url, headers }: Request): string | undefined {
  const given = headers.get('Idempotency-Key');
  if (given !== null) return given;
  const startsWork = method === 'POST' && STARTS_WORK.test(new URL(url).pathname);
  return startsWork ? newKey() : undefined;
}

/** Also where a page was not loaded by https, so that there is no randomUUID. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
}

/** JSON is read as a part of the request, so that one that breaks off is asked for again. */
async function readJson(response: Response): Promise<Response> {
  if (!isJson(response) || response.body === null) return response;
  return new Response(await response.text(), response);
}

/** Of the text in UTF-8, which `btoa` alone does not take. */
function toBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

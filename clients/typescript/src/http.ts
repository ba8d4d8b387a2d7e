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
   * For how many seconds a request is sent again where that is safe and may help. Default: 120, and 10 until the service has
   * answered once.
   */
  patience?: number | undefined;
  /** Told before a request is sent again, and before an event stream is opened again. */
  onRetry?: ((retry: { error: WindlassError; seconds: number }) => void) | undefined;
  /** Instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** What a request may say besides what `fetch` takes. */
export interface Sending {
  signal?: AbortSignal | null | undefined;
  /** Milliseconds within which an answer must begin, and one in JSON end. */
  timeoutMs?: number | undefined;
  /**
   * Whether the request may be sent twice; `false` also where its body is a stream. Default: GET and HEAD, and what has
   * an Idempotency-Key.
   */
  isRepeatable?: boolean | undefined;
  /** Seconds, instead of the connection's patience. */
  patience?: number | undefined;
  /** Called where the service gave no answer: it may have begun what was asked for. */
  onLost?: (() => void) | undefined;
}

/** The POSTs that the service answers with the same job when they are repeated under their key. */
export const STARTS_WORK =
  /\/api\/(hosts\/-\/scan|remotes(\/launch|\/[^/]+\/(answers|batch|login|videos))?|jobs\/[^/]+\/retry|uploads\/[^/]+\/finished)$/;
/** Methods that write nothing and have no body. */
const SAFE = ['GET', 'HEAD'];
/** The service refuses with these statuses before it has done anything. */
const REFUSED = [429];
/** Statuses of an overloaded or stopping service, or of a proxy before it. */
const TRANSIENT = [408, 502, 503, 504];
/** Statuses from here on are a proxy's alone, such as 522 of Cloudflare's, which did not reach the service. */
const FIRST_OF_PROXIES = 520;
const isTransient = (status: number) => TRANSIENT.includes(status) || status >= FIRST_OF_PROXIES;
/** Whether there was no answer, or one with a transient status. */
export const isPassing = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && (error.code === 'unreachable' || isTransient(error.status));

/** How long an answer may take that the service gives at once; after that, the connection is dead. */
export const ANSWER_MS = 60_000;

/** The longest wait, in ms, of a client with endless patience, whatever `Retry-After` says. */
const LONGEST_WAIT = 60_000;

/** The patience in seconds before the first answer: the address may be wrong. */
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
   * Sends requests for openapi-fetch, whose calls may set `timeoutMs`, `isRepeatable` and `onLost`. Without `timeoutMs` they
   * wait as long as the service does.
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
    // 304 is no error: it answers a condition.
    if (response.status < 400) return requireNoPage(response);
    throw await readError(response);
  }

  /** Waits before the next attempt of something that is repeated, and tells `onRetry`. */
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

/** Whether it is an absolute address, or in a page one relative to the page's. */
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

/** The error where no answer came, or one that broke off. */
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

/**
 * Whether an address of https answers without TLS, as a port of http does: another attempt would fail, too. Node tells this, a
 * browser does not.
 */
export const speaksNoTls = (cause: unknown): boolean =>
  /^ERR_SSL_(WRONG_V|PACKET)/.test(codeOf(cause));

/** Whether the server's certificate is refused: another attempt would fail, too. Node tells this, a browser does not. */
const isUntrusted = (cause: unknown): boolean =>
  /^(CERT_|(DEPTH_ZERO_)?SELF_SIGNED_|ERR_TLS_CERT_|UNABLE_TO_)/.test(codeOf(cause));

/** Whether there was no connection. Node tells this, a browser does not. */
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

/** A random key. Also works in a page that was not loaded by https, which has no randomUUID. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
}

/** Reads JSON as a part of the request, so that an answer that breaks off is asked for again. */
async function readJson(response: Response): Promise<Response> {
  if (!isJson(response) || response.body === null) return response;
  return new Response(await response.text(), response);
}

/** Base64 of the text in UTF-8: `btoa` alone takes only Latin-1. */
function toBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

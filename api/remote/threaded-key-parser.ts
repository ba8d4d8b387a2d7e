import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { WindlassError } from '../../shared/errors/errors.ts';
import { packageRoot } from '../../shared/process/package-root.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { UserSemaphores } from '../concurrency/user-semaphores.ts';
import { isPkcs8 } from './pkcs8.ts';
import { type ParsedKey, parsePrivateKey } from './private-key.ts';

/** Compiled: Node 20 cannot run TypeScript. */
const PROGRAM = fileURLToPath(new URL('dist/api/remote/private-key-thread.js', packageRoot));
/** A key states its own number of rounds: the usual 16 to 24 of ssh-keygen take about a second, 2^32 are allowed. */
const PARSE_TIMEOUT_MS = 15_000;
const MAX_THREADS = 2;
/** Keys of one user that wait or are parsed: each holds a request for as long as those before it take. */
const MAX_PER_USER = 32;
/** ssh2's regular expressions take quadratic time: longer keys can block for seconds, encrypted or not. */
const INLINE_LENGTH = 4_096;

/**
 * Parses private keys in threads, so that they do not block the event loop. Workers then get keys without a passphrase,
 * quick to parse at each login.
 */
export class ThreadedKeyParser {
  readonly #perUser = new UserSemaphores(1);
  readonly #inAll = new Semaphore(MAX_THREADS);
  readonly #timeoutMs: number;

  constructor(timeoutMs = PARSE_TIMEOUT_MS) {
    this.#timeoutMs = timeoutMs;
  }

  /** Throws `too_many_requests` where too many keys of the user wait. */
  async parse(
    user: string,
    privateKey: string,
    passphrase: string | undefined,
  ): Promise<ParsedKey> {
    if (!passphrase && privateKey.length <= INLINE_LENGTH && !isPkcs8(privateKey))
      return parsePrivateKey(privateKey);
    if (this.#perUser.count(user) >= MAX_PER_USER) throw tooManyKeys();
    return this.#perUser.run(user, () =>
      this.#inAll.run(() => this.#parseInThread(privateKey, passphrase)),
    );
  }

  async #parseInThread(privateKey: string, passphrase: string | undefined): Promise<ParsedKey> {
    const thread = new Worker(PROGRAM, { workerData: { privateKey, passphrase } });
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise((resolve, reject) => {
        thread.once('message', resolve).once('error', reject);
        thread.once('exit', () => reject(new Error('the thread that parses a key ended')));
        timer = setTimeout(() => resolve({ problem: tooSlow(this.#timeoutMs) }), this.#timeoutMs);
      });
    } finally {
      clearTimeout(timer);
      await thread.terminate();
    }
  }
}

const tooSlow = (ms: number) =>
  `takes longer than ${ms / 1_000} s to open; ssh-keygen -p -a 16 makes it one that takes less`;

const tooManyKeys = () =>
  new WindlassError('too_many_requests', {
    detail: `You have ${MAX_PER_USER} private keys that wait to be opened, which is the limit.`,
    hint: 'Wait until some of these logins are answered, or send keys without a passphrase.',
    headers: { 'Retry-After': '5' },
  });

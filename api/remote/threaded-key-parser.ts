import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '../../shared/package-root.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { UserSemaphores } from '../concurrency/user-semaphores.ts';
import { type ParsedKey, parsePrivateKey } from './private-key.ts';

/** The compiled one: Node 20 cannot run TypeScript. */
const PROGRAM = fileURLToPath(new URL('dist/api/remote/private-key-thread.js', packageRoot));
/** A key says itself how much work it is to open: ssh-keygen's usual 16 to 24 rounds take about a second, 2^32 are allowed. */
const OPEN_MS = 15_000;
const AT_ONCE = 2;
/** Longer ones can hold up ssh2's expressions for seconds, encrypted or not: with their length the time grows squared. */
const INLINE_LENGTH = 4_096;

/**
 * Opens private keys apart from everything else that this process does; workers, which log in with them again and again,
 * get them opened.
 */
export class ThreadedKeyParser {
  readonly #users = new UserSemaphores(1);
  readonly #all = new Semaphore(AT_ONCE);
  readonly #openMs: number;

  constructor(openMs = OPEN_MS) {
    this.#openMs = openMs;
  }

  async open(user: string, privateKey: string, passphrase: string | undefined): Promise<ParsedKey> {
    if (!passphrase && privateKey.length <= INLINE_LENGTH) return parsePrivateKey(privateKey);
    return this.#users.take(user, () =>
      this.#all.take(() => this.#openApart(privateKey, passphrase)),
    );
  }

  async #openApart(privateKey: string, passphrase: string | undefined): Promise<ParsedKey> {
    const thread = new Worker(PROGRAM, { workerData: { privateKey, passphrase } });
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise((resolve, reject) => {
        thread.once('message', resolve).once('error', reject);
        thread.once('exit', () => reject(new Error('the thread that opens a key has ended')));
        timer = setTimeout(() => resolve({ problem: tooSlow(this.#openMs) }), this.#openMs);
      });
    } finally {
      clearTimeout(timer);
      await thread.terminate();
    }
  }
}

const tooSlow = (ms: number) =>
  `takes longer than ${ms / 1_000} s to open; ssh-keygen -p -a 16 makes it one that takes less`;

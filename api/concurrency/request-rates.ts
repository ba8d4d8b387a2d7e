import { CountsPerSecond } from './counts-per-second.ts';

/** The requests of each user in this second, in this process. */
export class RequestRates {
  readonly #perSecond: number;
  readonly #ofUsers = new CountsPerSecond();
  readonly #refused = new CountsPerSecond();

  /** @param perSecond LIMIT_REQUESTS; 0: no limit */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Counts a request of a user, who has sent this credential. Whether it is one too many. */
  exceed(username: string, credential: string | undefined): boolean {
    const isOne = this.#ofUsers.add(username) > this.#perSecond && this.#perSecond > 0;
    if (isOne && credential !== undefined) this.#refused.add(credential);
    return isOne;
  }

  /** Whether a request with this credential was one too many in this second: then the next one is, too. */
  isRefused(credential: string): boolean {
    return this.#refused.has(credential);
  }
}

/** What a request says of its sender, unread: who sends the same is the same. */
export const credentialOf = ({
  authorization,
  cookie,
}: {
  authorization?: string;
  cookie?: string;
}): string | undefined => authorization ?? cookie;

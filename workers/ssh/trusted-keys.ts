import { LRUCache } from 'lru-cache';
import type { HostRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { SshCertificate } from '../../shared/ssh/certificates.ts';
import { fingerprint, keyBytes } from '../../shared/ssh/keys.ts';
import { authoritiesFor, ownKeys } from '../../shared/ssh/pins.ts';
import { describeHops } from './circuit-breaker.ts';
import { findCertificateProblem } from './host-certificate.ts';

/** Remembered hosts, and certificates of each: one address may lead to several machines. */
const MAX_HOSTS = 10_000;
const MAX_OF_ONE = 32;
/** How often a certificate is asked for until a new one comes: each connection may lead to another machine. */
const MAX_ASKED = 3;

/**
 * The certificates that count of those that hosts have shown, by the hops to the host; public, and checked anew at
 * every login. Saves a second connection, which sshd counts against the worker's address.
 */
export class SeenCertificates {
  readonly #seen = new LRUCache<string, SshCertificate[]>({ max: MAX_HOSTS });

  of(hops: HostRow[]): SshCertificate[] {
    return this.#seen.get(describeHops(hops)) ?? [];
  }

  add(hops: HostRow[], certificate: SshCertificate): void {
    const others = this.of(hops).filter(
      ({ publicKey }) => !publicKey.equals(certificate.publicKey),
    );
    this.#seen.set(describeHops(hops), [certificate, ...others].slice(0, MAX_OF_ONE));
  }
}

interface Trust {
  host: HostRow;
  /** Those to it; it is the last. */
  hops: HostRow[];
  seen: SeenCertificates;
  /** Has the host show its certificate; undefined where it has none. */
  fetch(): Promise<SshCertificate | undefined>;
}

/** The keys that a host may show: those pinned, and those certified by a pinned authority. */
export class TrustedKeys {
  readonly #trust: Trust;
  readonly #own: Buffer[];
  readonly #authorities: Buffer[];
  /** What to say about the last certificate, as the end of a sentence. */
  #remark = '';

  constructor(trust: Trust) {
    this.#trust = trust;
    this.#own = ownKeys(trust.host.keys).map(keyBytes);
    this.#authorities = authoritiesFor(trust.host);
  }

  /** In wire format. Throws `host_key_changed` where there is none, and what `fetch` throws. */
  async read(): Promise<Buffer[]> {
    // With a pinned key of its own, the host probably shows that one.
    const known = [...this.#own, ...this.#certified()];
    if (known.length === 0 && this.#authorities.length > 0) await this.#ask();
    const keys = [...this.#own, ...this.#certified()];
    if (keys.length === 0) throw this.#changed('shows no key that is trusted');
    return keys;
  }

  /** Whether to try a host again that has shown an unknown key: it has a new certificate, which counts. */
  async renew(): Promise<boolean> {
    if (this.#authorities.length === 0) return false;
    const known = this.#certified();
    for (let asked = 0; asked < MAX_ASKED; asked++) {
      const key = await this.#ask();
      if (!key) return false;
      if (!known.some(one => one.equals(key))) return true;
    }
    return false;
  }

  /** The error of a host that shows a key which is not trusted. */
  refuse = (shown: Buffer): WindlassError => this.#changed(`shows ${fingerprint(shown)}`);

  #certified(): Buffer[] {
    const { seen, hops } = this.#trust;
    return seen
      .of(hops)
      .filter(certificate => this.#findProblem(certificate) === undefined)
      .map(({ publicKey }) => publicKey);
  }

  /** The key that the certificate is of which the host shows now, where it counts. */
  async #ask(): Promise<Buffer | undefined> {
    const { seen, hops, fetch } = this.#trust;
    const certificate = await fetch();
    const problem = certificate && this.#findProblem(certificate);
    if (!certificate) this.#remark = '; it shows no certificate of a host';
    else this.#remark = `; its certificate ${problem ?? 'is of another key'}`;
    if (!certificate || problem !== undefined) return undefined;
    seen.add(hops, certificate);
    return certificate.publicKey;
  }

  #findProblem(certificate: SshCertificate): string | undefined {
    const { address } = this.#trust.host;
    return findCertificateProblem(certificate, { address, authorities: this.#authorities });
  }

  #changed(what: string): WindlassError {
    const authorities = this.#authorities.map(key => `the authority ${fingerprint(key)}`);
    const { address } = this.#trust.host;
    const pinned =
      [...this.#own.map(fingerprint), ...authorities].join(', ') || `none for ${address}`;
    return new WindlassError('host_key_changed', {
      detail: `${this.#trust.host.name} ${what}, pinned is ${pinned}${this.#remark}.`,
      hint: hintFor(this.#authorities),
    });
  }
}

const hintFor = (authorities: Buffer[]) =>
  authorities.length === 0
    ? "Somebody may be listening in. If the change is right, a server administrator sets the new key in the host's entry."
    : "Somebody may be listening in. If not, have a pinned authority sign the host's key for this address (ssh-keygen -s), or a server administrator sets the new key in the host's entry.";

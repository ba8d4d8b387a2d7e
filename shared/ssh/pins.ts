import { createPublicKey } from 'node:crypto';
import ssh2 from 'ssh2';
import { KEY_TYPES } from './certificates.ts';
import { keyBytes } from './keys.ts';
import { fitsPatterns } from './name-patterns.ts';

/**
 * A pin of a host is the line of one of its own keys, `ssh-ed25519 AAAA…`, or of an authority that certifies them,
 * `@cert-authority *.example.org ssh-ed25519 AAAA…`, as in OpenSSH's known_hosts.
 */
const AUTHORITY = '@cert-authority';
const AUTHORITY_FORM = `must be "${AUTHORITY} HOSTS ssh-ed25519 AAAA…", as in known_hosts`;

/** Bits of an authority's key: NIST SP 800-131A asks for as many. */
const MIN_RSA_BITS = 2_048;

interface At {
  address: string;
  port: number;
}

const fieldsOf = (line: string) => line.trim().split(/\s+/);

export const isAuthority = (pin: string) => fieldsOf(pin)[0] === AUTHORITY;

/** The line of the key in a pin: the host's, or the authority's. */
export const keyLineIn = (pin: string) =>
  fieldsOf(pin)
    .slice(isAuthority(pin) ? 2 : 0)
    .slice(0, 2)
    .join(' ');

/** The lines of the host's own keys among its pins. */
export const ownKeys = (pins: string[]) => pins.filter(pin => !isAuthority(pin));

/** The keys, in wire format, of the authorities among the pins whose patterns fit the host. */
export const authoritiesFor = ({ keys, ...at }: At & { keys: string[] }): Buffer[] =>
  keys.filter(pin => isAuthority(pin) && isFor(pin, at)).map(pin => keyBytes(keyLineIn(pin)));

/**
 * Whether the patterns of an authority fit a host, which at another port than 22 has the name `[address]:port`, too.
 * OpenSSH tries that first, then the address. Here an exclusion by either name excludes the host.
 */
export function isFor(authority: string, { address, port }: At): boolean {
  const patterns = (fieldsOf(authority)[1] ?? '').toLowerCase();
  const name = address.toLowerCase();
  return fitsPatterns([name, `[${name}]:${port}`], patterns);
}

/** A pin as it is stored, or what is wrong with it. */
export function readPin(line: string): { pin: string } | { problem: string } {
  if (isAuthority(line)) return readAuthority(line);
  const [marker = ''] = fieldsOf(line);
  if (marker.startsWith('@'))
    return {
      problem: `has the marker ${marker}: only ${AUTHORITY} is known; leave out a key that does not count any more`,
    };
  const key = parseLine(line);
  if (!key) return { problem: 'must be a public key such as "ssh-ed25519 AAAA…"' };
  if (key.type.includes('-cert-'))
    return {
      problem: `is a certificate: give the key itself, or the authority that signed it as "${AUTHORITY} HOSTS ssh-ed25519 AAAA…"`,
    };
  return { pin: keyLineIn(line) };
}

function readAuthority(line: string): { pin: string } | { problem: string } {
  const [marker, patterns = '', type = '', encoded = ''] = fieldsOf(line);
  if (patterns.startsWith('|'))
    return { problem: 'must name its hosts in the clear: hashed names have no patterns' };
  if (encoded === '') return { problem: AUTHORITY_FORM };
  if (!KEY_TYPES.includes(type))
    return { problem: `${AUTHORITY_FORM}; the key's type is one of ${KEY_TYPES.join(', ')}` };
  if (!isUsable(`${type} ${encoded}`))
    return {
      problem: `${AUTHORITY_FORM}, with a sound key, of ${MIN_RSA_BITS} bits at least where it is RSA`,
    };
  return { pin: [marker, patterns, type, encoded].join(' ') };
}

/** Whether signatures can be verified with a key, and are worth something. */
function isUsable(line: string): boolean {
  const key = parseLine(line);
  if (!key) return false;
  try {
    const { asymmetricKeyDetails = {} } = createPublicKey(key.getPublicPEM());
    const { modulusLength = MIN_RSA_BITS, publicExponent = 3n } = asymmetricKeyDetails;
    return modulusLength >= MIN_RSA_BITS && publicExponent >= 3n;
  } catch {
    return false;
  }
}

/** ssh2 throws at some malformed keys, and returns an error for others. */
function parseLine(line: string): ssh2.ParsedKey | undefined {
  try {
    const key = ssh2.utils.parseKey(line);
    return key instanceof Error ? undefined : key;
  } catch {
    return undefined;
  }
}

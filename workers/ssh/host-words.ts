import type ssh2 from 'ssh2';

/** The most characters kept of what a host says. */
const MAX_CHARACTERS = 4_096;
/** Control characters but for tabs and line breaks: a terminal would obey them. */
const CONTROLS = /[^\P{Cc}\t\n]/gu;

/**
 * What a host tells people during a login (RFC 4252, 5.4), before and after it got a credential. It may send more as
 * long as the connection lasts.
 */
export class HostWords {
  #before = '';
  #after = '';
  #isCredentialSent = false;

  constructor(client: ssh2.Client) {
    client.on('banner', text => this.add(text));
  }

  add(text: string): void {
    if (this.#isCredentialSent) this.#after = append(this.#after, text);
    else this.#before = append(this.#before, text);
  }

  get isCredentialSent(): boolean {
    return this.#isCredentialSent;
  }

  credentialSent(): void {
    this.#isCredentialSent = true;
  }

  /** All that the host said. */
  get banner(): string {
    return readable(append(this.#before, this.#after));
  }

  /** What the host said about the login itself. */
  get aboutLogin(): string {
    return readable(this.#after);
  }
}

/** Keeps a bounded part only, as a copy: a substring would keep the whole text in memory. */
function append(words: string, text: string): string {
  if (words.length >= MAX_CHARACTERS) return words;
  const both = words ? `${words}\n${text}` : text;
  if (both.length <= MAX_CHARACTERS) return both;
  return Buffer.from(both.slice(0, MAX_CHARACTERS), 'utf16le').toString('utf16le');
}

/** Text of a host for people to read: of bounded length, without control characters or space around it. */
export const readable = (text: string) => harmless(text).trim();

/** Like readable(), but keeps the space around it, such as that of a prompt. */
export function harmless(text: string): string {
  // The database takes no text with half of a surrogate pair.
  const cut = text.slice(0, MAX_CHARACTERS).replace(/[\ud800-\udbff]$/, '');
  return cut.replace(/\r\n?/g, '\n').replace(CONTROLS, '');
}

/** The host's words as the end of an error's detail. */
export const quoteHost = (words: string) => (words ? ` The host says: ${words}` : '');

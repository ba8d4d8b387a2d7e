interface KeptCookie {
  origin: string;
  path: string;
  name: string;
  value: string;
}

/** A browser as far as logins need one: it keeps cookies for origin and path, and follows redirects. */
export class RedirectBrowser {
  readonly #cookies: KeptCookie[] = [];
  readonly #site: { url: string; at: string } | undefined;

  /** Where `site` is given, its `url` is reached at the address `at`: a proxy that strips the url's path. */
  constructor(site?: { url: string; at: string }) {
    this.#site = site;
  }

  /** The cookies that a request for this URL carries, by name. */
  cookies(url: string): Map<string, string> {
    const { origin, pathname } = new URL(url);
    // RFC 6265, 5.1.4.
    const sent = this.#cookies.filter(
      ({ origin: of, path }) =>
        of === origin && (pathname === path || pathname.startsWith(path.replace(/\/?$/, '/'))),
    );
    return new Map(sent.map(({ name, value }) => [name, value]));
  }

  setCookie(url: string, line: string): void {
    const [pair = '', ...attributes] = line.split(/; */);
    const [name = '', value = ''] = pair.split(/=(.*)/s);
    const attribute = (wanted: string) =>
      attributes.map(each => each.split('=')).find(([n]) => n?.toLowerCase() === wanted)?.[1];
    const { origin } = new URL(url);
    const path = attribute('path') ?? '/';
    const at = this.#cookies.findIndex(
      kept => kept.origin === origin && kept.path === path && kept.name === name,
    );
    if (at >= 0) this.#cookies.splice(at, 1);
    const expires = attribute('expires');
    if (expires !== undefined && new Date(expires).getTime() < Date.now()) return;
    this.#cookies.push({ origin, path, name, value });
  }

  /** One request, without following what it answers. */
  async get(url: string): Promise<Response> {
    const cookie = [...this.cookies(url)].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(this.#addressOf(url), {
      redirect: 'manual',
      headers: cookie ? { cookie } : {},
    });
    for (const line of response.headers.getSetCookie()) this.setCookie(url, line);
    return response;
  }

  /** Follows redirects until one leads to a URL that begins so, which is returned, or an answer is none. */
  async follow(url: string, until: string): Promise<{ url: string; response?: Response }> {
    let next = url;
    for (let hops = 0; hops < 20; hops++) {
      if (next.startsWith(until)) return { url: next };
      const response = await this.get(next);
      const location = response.headers.get('Location');
      if (location === null) return { url: next, response };
      await response.arrayBuffer();
      next = new URL(location, next).href;
    }
    throw new Error(`too many redirects, the last one to ${next}`);
  }

  #addressOf(url: string): string {
    const { url: site, at } = this.#site ?? {};
    return site !== undefined && url.startsWith(site) ? `${at}${url.slice(site.length)}` : url;
  }
}

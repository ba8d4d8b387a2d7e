import { Agent, request } from 'node:http';
import type { Stack } from '../stacks/stack.ts';

interface Answer {
  status: number;
  /** The headers by their names in lower case. */
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

interface Given {
  /** Written as Python's json.dumps does. */
  json?: unknown;
  form?: Record<string, string>;
  accept?: string;
  /** False for delete_upload(), which alone sends the cookies without the password. */
  isBasic?: boolean;
}

/**
 * Sends what slycat-web-client 4.5.2 of PyPI sends, byte for byte, and takes of an answer what its Connection.request()
 * takes. Recorded, since that client needs Kerberos libraries.
 */
export class SlycatClient {
  readonly #url: URL;
  readonly #user: { username: string; password: string };
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #cookies: string[] = [];

  private constructor(stack: Pick<Stack, 'url' | 'username' | 'password'>) {
    this.#url = new URL(stack.url);
    this.#user = stack;
  }

  /** Its connect(), which takes a login without a cookie for a bad password. */
  static async connect(stack: Pick<Stack, 'url' | 'username' | 'password'>): Promise<SlycatClient> {
    const client = new SlycatClient(stack);
    const { username, password } = stack;
    const json = { user_name: btoa(username), password: btoa(password) };
    const { headers } = await client.send('POST', '/api/login', { json, isBasic: false });
    const lines = [headers['set-cookie'] ?? []].flat();
    client.#cookies = lines.map(line => line.split(';', 1)[0] ?? '');
    if (lines.length === 0) throw new Error('bad username or password');
    return client;
  }

  /** Its request(): the JSON of an answer, or its bytes. Throws for a status from 400, and where no Content-Type is. */
  async request<T = unknown>(method: string, path: string, given: Given = {}): Promise<T> {
    const { status, headers, body } = await this.send(method, path, given);
    if (status >= 400) throw new Error(`${status} ${body}`);
    const type = headers['content-type'];
    if (typeof type !== 'string') throw new Error(`KeyError: content-type of ${method} ${path}`);
    return (type.startsWith('application/json') ? JSON.parse(body.toString()) : body) as T;
  }

  send(method: string, path: string, given: Given = {}): Promise<Answer> {
    const { json, form, accept, isBasic = true } = given;
    const body =
      json === undefined ? form && new URLSearchParams(form).toString() : toPythonJson(json);
    const { hostname, port } = this.#url;
    const { username, password } = this.#user;
    const isLogin = this.#cookies.length === 0;
    const length = ['Content-Length', String(Buffer.byteLength(body ?? ''))];
    const type = ['content-type', 'application/json'];
    const headers = [
      ['Host', this.#url.host],
      ['User-Agent', 'python-requests/2.34.2'],
      ['Accept-Encoding', 'gzip, deflate'],
      accept === undefined ? ['Accept', '*/*'] : ['accept', accept],
      ['Connection', 'keep-alive'],
      ...(json === undefined || isLogin ? [] : [type]),
      ...(isLogin ? [] : [['Cookie', this.#cookies.join('; ')]]),
      ...(method === 'GET' ? [] : [length]),
      ...(isLogin ? [['Content-Type', 'application/json']] : []),
      ...(form ? [['Content-Type', 'application/x-www-form-urlencoded']] : []),
      ...(isBasic ? [['Authorization', `Basic ${btoa(`${username}:${password}`)}`]] : []),
    ].flat();
    const options = { hostname, port, method, path, headers, agent: this.#agent };
    return new Promise((resolve, reject) => {
      const req = request(options, res => {
        const parts: Buffer[] = [];
        res.on('data', part => parts.push(part));
        res.once('error', reject);
        res.once('end', () => {
          const { statusCode: status = 0, headers } = res;
          resolve({ status, headers, body: Buffer.concat(parts) });
        });
      });
      req.once('error', reject);
      req.end(body);
    });
  }

  end(): void {
    this.#agent.destroy();
  }
}

/** Writes JSON with a space after each comma and colon, for values that hold none. */
const toPythonJson = (value: unknown): string =>
  JSON.stringify(value, null, 1)
    .replace(/\n\s*/g, ' ')
    .replace(/([[{]) | ([\]}])/g, '$1$2');

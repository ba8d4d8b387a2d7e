import { randomBytes } from 'node:crypto';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms, type SkipReason } from '../harness/skip.ts';
import type { Form } from '../harness/stacks/forms.ts';
import type { Stack } from '../harness/stacks/stack.ts';
import { Description, type Document } from './description.ts';
import { Fixtures } from './fixtures.ts';
import type { Need } from './row.ts';
import { type Credentials, send } from './send.ts';
import type { Target, TargetHost } from './settings.ts';

/** Settings of a stack of the suite's own: how long an unused session lives, and how many open uploads a user may have. */
const IDLE_SECONDS = 90;
export const OPEN_UPLOADS = 100;

/** The service under test, and what the suite knows of it. */
export class World {
  readonly url: string;
  readonly user: Credentials;
  readonly description: Description;
  readonly make: Fixtures;
  /** A login on a host of the service. */
  readonly host: TargetHost | undefined;
  /** Where the suite started the service itself. */
  readonly own: { stack: Stack; sshd: TestSshd | undefined } | undefined;
  /** Sets the names of this run apart from those of others. */
  readonly mark = `t${randomBytes(4).toString('hex')}`;
  readonly #isAdministrator: boolean;
  #names = 0;

  constructor(given: {
    target: Target;
    document: Document;
    isAdministrator: boolean;
    own?: { stack: Stack; sshd: TestSshd | undefined };
  }) {
    this.url = given.target.url;
    this.user = given.target;
    this.host = given.target.host;
    this.own = given.own;
    this.description = new Description(given.document);
    this.#isAdministrator = given.isAdministrator;
    this.make = new Fixtures(this);
  }

  /** A name that nothing else has. */
  name(word: string): string {
    return `${word}-${this.mark}-${++this.#names}`;
  }

  /** Why a case cannot be run here, if so. */
  lacks(needs: Need[]): SkipReason | undefined {
    if (needs.includes('host') && !this.host)
      return this.own
        ? missingPrograms('sshd', 'ffmpeg')
        : { reason: 'needs WINDLASS_HOST', obtainable: false };
    if (needs.includes('own') && !this.own)
      return { reason: 'needs a service of its own', obtainable: false };
    if (needs.includes('administrator') && !this.#isAdministrator)
      return { reason: 'needs a server administrator', obtainable: false };
    return undefined;
  }

  async end(): Promise<void> {
    await this.make.remove();
    await this.own?.stack.stop();
    await this.own?.sshd?.stop();
  }
}

/** On a stack of its own, with these settings beside the suite's. */
export async function startWorld(
  form: Form,
  settings: Record<string, string> = {},
): Promise<World> {
  const hasHost = missingPrograms('sshd', 'ffmpeg') === undefined;
  const env = {
    SESSION_IDLE_TIMEOUT: String(IDLE_SECONDS),
    LIMIT_UPLOADS: String(OPEN_UPLOADS),
    ...settings,
  };
  const [stack, sshd] = await Promise.all([
    form.start({ env }),
    hasHost ? startTestSshd() : undefined,
  ]);
  const hostname = 'host';
  const target = { url: stack.url, username: stack.username, password: stack.password };
  if (!sshd) return findWorld(target, { stack, sshd });
  const added = await send(stack.url, {
    method: 'POST',
    target: '/api/hosts',
    as: target,
    json: {
      name: hostname,
      address: sshd.host,
      port: sshd.port,
      keys: [sshd.hostKey],
      agent: true,
      private: true,
    },
  });
  if (added.status !== 201) throw new Error(added.text);
  const { username, privateKey } = sshd;
  return findWorld({ ...target, host: { hostname, username, privateKey } }, { stack, sshd });
}

/** On a service that runs already, or on the stack that was started for it. */
export async function findWorld(target: Target, own?: World['own']): Promise<World> {
  const get = async (path: string) => {
    const answer = await send(target.url, { method: 'GET', target: path, as: target });
    if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${answer.text}`);
    return answer;
  };
  const me = (await get('/api/users/-')).json<{ administrator: boolean }>();
  const document = (await get('/api/openapi.json')).json<Document>();
  const world = new World({ target, document, isAdministrator: me.administrator, own });
  if (own && target.host) await world.make.abandoned();
  return world;
}

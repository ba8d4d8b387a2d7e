import { randomBytes } from 'node:crypto';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import type { Form } from '../harness/stacks/forms.ts';
import type { Stack } from '../harness/stacks/stack.ts';
import { Description, type Document } from './description.ts';
import { Fixtures } from './fixtures.ts';
import { type Credentials, send } from './send.ts';

/** Settings of the suite: how long an unused session lives, and how many open uploads a user may have. */
const IDLE_SECONDS = 90;
export const OPEN_UPLOADS = 100;

/** A login on a host that the service knows, set up for an agent. */
interface HostLogin {
  hostname: string;
  username: string;
  privateKey: string;
}

/** The service under test, and what the suite knows of it. */
export class World {
  readonly stack: Stack;
  /** A server administrator. */
  readonly user: Credentials;
  readonly description: Description;
  readonly make: Fixtures;
  /** Of the host; undefined where its programs are missing. */
  readonly sshd: TestSshd | undefined;
  readonly host: HostLogin | undefined;
  /** Sets the names of this run apart from those of others. */
  readonly mark = `t${randomBytes(4).toString('hex')}`;
  #names = 0;

  constructor(given: {
    stack: Stack;
    sshd: TestSshd | undefined;
    host: HostLogin | undefined;
    document: Document;
  }) {
    const { stack } = given;
    this.stack = stack;
    this.user = { username: stack.username, password: stack.password };
    this.sshd = given.sshd;
    this.host = given.host;
    this.description = new Description(given.document);
    this.make = new Fixtures(this);
  }

  get url(): string {
    return this.stack.url;
  }

  /** A name that nothing else has. */
  name(word: string): string {
    return `${word}-${this.mark}-${++this.#names}`;
  }

  async end(): Promise<void> {
    await this.stack.stop();
    await this.sshd?.stop();
  }
}

/** What the host of the suite needs. */
export const missingHost = () => missingPrograms('sshd', 'ffmpeg');

/** Starts a service with these settings beside the suite's. */
export async function startWorld(
  form: Form,
  settings: Record<string, string> = {},
): Promise<World> {
  const env = {
    SESSION_IDLE_TIMEOUT: String(IDLE_SECONDS),
    LIMIT_UPLOADS: String(OPEN_UPLOADS),
    ...settings,
  };
  const [stack, sshd] = await Promise.all([
    form.start({ env }),
    missingHost() ? undefined : startTestSshd(),
  ]);
  const host = sshd && (await addHost(stack, sshd));
  const description = await send(stack.url, { method: 'GET', target: '/api/openapi.json' });
  if (description.status !== 200) throw new Error(description.text);
  const world = new World({ stack, sshd, host, document: description.json<Document>() });
  if (host) await world.make.abandoned();
  return world;
}

async function addHost(stack: Stack, sshd: TestSshd): Promise<HostLogin> {
  const hostname = 'host';
  const added = await send(stack.url, {
    method: 'POST',
    target: '/api/hosts',
    as: { username: stack.username, password: stack.password },
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
  return { hostname, username: sshd.username, privateKey: sshd.privateKey };
}

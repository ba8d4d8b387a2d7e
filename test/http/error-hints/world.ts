import type { Client } from '../../../servers/api-client.ts';
import type { Problem } from '../../harness/clients/problem.ts';
import type { TestSshd } from '../../harness/hosts/sshd.ts';
import type { Stack } from '../../harness/stacks/stack.ts';

/** What the cases begin with. */
export interface World {
  stack: Stack;
  client: Client;
  sshd: TestSshd;
  /** A session with an agent. */
  sid: string;
  /** Frames on the host. */
  images: string[];
  pid: string;
  mid: string;
}

/** A request that is refused, and the same or another one that does what the hint says. */
export interface HintCase {
  provoke(world: World): Promise<Response>;
  /** What the hint tells, so that `follow` does that and nothing else; undefined where the page's remedy has to do. */
  hint: RegExp | undefined;
  follow(world: World, problem: Problem): Promise<Response>;
}

export const send = (
  { client }: World,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) =>
  client.fetch(path, {
    method,
    headers,
    ...(body === undefined
      ? {}
      : {
          body:
            body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body),
        }),
  });

export const read = async <T>(response: Promise<Response>): Promise<T> =>
  (await response).json() as Promise<T>;

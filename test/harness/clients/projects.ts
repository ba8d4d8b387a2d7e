import { Client } from '../../../servers/api-client.ts';
import type { Stack } from '../stacks/stack.ts';

/** Adds users of these names, each with a client. */
export async function addUsers<N extends string>(
  stack: Stack,
  names: readonly N[],
): Promise<Record<N, Client>> {
  const password = 'a long password';
  const made = await Promise.all(
    names.map(async username => {
      const response = await stack.api('/api/users', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ username, password }),
      });
      if (response.status !== 201) throw new Error(`${response.status}: ${await response.text()}`);
      return [username, new Client(stack.url, username, password)] as const;
    }),
  );
  return Object.fromEntries(made) as Record<N, Client>;
}

/** Those who stand for each part in a project; `admin` of the stack is a server administrator. */
export const PEOPLE = ['owner', 'writer', 'reader', 'stranger'] as const;
export type People = Record<(typeof PEOPLE)[number], Client>;

const ACL = { writers: [{ user: 'writer' }], readers: [{ user: 'reader' }] };

/** A project of `owner`, with a writer and a reader. */
export async function makeProject({ owner }: People, name = 'project'): Promise<string> {
  return (await owner.post<{ id: string }>('/api/projects', { name, acl: ACL })).id;
}

export async function makeModel({ owner }: People, pid: string, name = 'model'): Promise<string> {
  const body = { name, 'model-type': 'any' };
  return (await owner.post<{ id: string }>(`/api/projects/${pid}/models`, body)).id;
}

import { dim, expect } from '../console.ts';
import type { DemoContext } from '../context.ts';

/** Stores a parameter and reads the same bytes, although JavaScript cannot represent its number. */
export async function storeParameter({ client, out }: DemoContext, mid: string): Promise<void> {
  const value = '{"seed": 123456789012345678901234567890, "offset": -0, "steps": 1e400}';
  const path = `/api/models/${mid}/parameters/start%20values`;
  const put = await client.fetch(path, {
    method: 'PUT',
    body: `{"value": ${value}, "input": true}`,
  });
  expect(put.status === 200, `${put.status}: ${await put.text()}`);
  const text = await (await client.fetch(path)).text();
  expect(text === value, `another value came back: ${text}`);
  out.note(`stored  ${value}`);
  out.note(`read    ${text}`);
  out.note(dim(`JSON.parse would make the seed ${JSON.parse(text).seed}`));
}

/** Stores the same client state twice, which makes one bookmark. */
export async function storeBookmark({ client, out }: DemoContext, pid: string): Promise<void> {
  const state = { camera: [0, 12.5, 3], colors: 'viridis', selection: [17, 4] };
  const path = `/api/projects/${pid}/bookmarks`;
  const { id } = await client.post<{ id: string }>(path, state);
  const again = await client.post<{ id: string }>(path, state);
  expect(again.id === id, 'the same state became another bookmark');
  const stored = await client.get<unknown>(`/api/bookmarks/${id}`);
  expect(JSON.stringify(stored) === JSON.stringify(state), 'another state came back');
  out.note(`bookmark ${id}: ${JSON.stringify(stored)}`);
}

/** Sends an event and waits until `logged` finds its line in the server's log. */
export async function recordEvent(
  { client, out }: DemoContext,
  logged: (words: string) => Promise<string>,
): Promise<void> {
  const path = '/events/select/station/2';
  const answer = await client.fetch(`/api${path}?from=table&row=17`, { method: 'POST' });
  expect(answer.status === 204, `204 was expected, it is ${answer.status}`);
  const line = await logged(path.slice('/events/'.length));
  out.note(dim('the line in the log of the service:'));
  out.note(line);
}

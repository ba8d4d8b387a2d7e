import { dim, expect } from '../console.ts';
import type { Demo } from '../demo.ts';

/** A parameter comes back as it was sent, to the byte, though JavaScript could not hold its number. */
export async function keepParameter({ client, out }: Demo, mid: string): Promise<void> {
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

/** The same client state twice is one bookmark. */
export async function keepBookmark({ client, out }: Demo, pid: string): Promise<void> {
  const state = { camera: [0, 12.5, 3], colors: 'viridis', selection: [17, 4] };
  const path = `/api/projects/${pid}/bookmarks`;
  const { id } = await client.post<{ id: string }>(path, state);
  const again = await client.post<{ id: string }>(path, state);
  expect(again.id === id, 'the same state became another bookmark');
  const kept = await client.get<unknown>(`/api/bookmarks/${id}`);
  expect(JSON.stringify(kept) === JSON.stringify(state), 'another state came back');
  out.note(`bookmark ${id}: ${JSON.stringify(kept)}`);
}

/** An event becomes one line of the server's log, which `logged` waits for. */
export async function recordEvent(
  { client, out }: Demo,
  logged: (words: string) => Promise<string>,
): Promise<void> {
  const path = '/events/select/station/2';
  const answer = await client.fetch(`/api${path}?from=table&row=17`, { method: 'POST' });
  expect(answer.status === 204, `204 was expected, it is ${answer.status}`);
  const line = await logged(path.slice('/events/'.length));
  out.note(dim('the line in the log of the service:'));
  out.note(line);
}

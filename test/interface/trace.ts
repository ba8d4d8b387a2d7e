import type { Answer } from './send.ts';

/** What of an answer must be the same with and without the prefix. */
export interface Seen {
  method: string;
  status: number;
  reason: string;
  headers: string[];
  shape: unknown;
}

/** These say how the bytes came, not what they are. */
const TRANSPORT = ['connection', 'keep-alive', 'content-length', 'transfer-encoding'];

export function look(method: string, answer: Answer): Seen {
  const isJson = /[/+]json$/.test(answer.type) && answer.bytes.length > 0;
  return {
    method,
    status: answer.status,
    reason: answer.reason,
    headers: Object.keys(answer.headers)
      .filter(name => !TRANSPORT.includes(name))
      .sort(),
    shape: isJson ? shapeOf(answer.json<unknown>()) : answer.type,
  };
}

/** The names of members, however deep; of an array the first item's. Values may differ, `null` among them. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length > 0 ? [shapeOf(value[0])] : [];
  if (typeof value !== 'object' || value === null) return '';
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, shapeOf(member)]),
  );
}

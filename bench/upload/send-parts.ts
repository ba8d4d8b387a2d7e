import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';

export const PART_BYTES = 8 << 20;
const CONNECTIONS = 4;

export interface PartRequest {
  url: string;
  method: string;
  headers?: Record<string, string>;
  /** The expected status. */
  status: number;
}

/** A Buffer, or what reads a piece only when it is asked for. */
export interface FileBytes {
  length: number;
  subarray(start: number, end: number): Buffer;
}

/** Sends the parts of a file over a few connections, each with one part at a time. */
export async function sendParts(
  file: FileBytes,
  makeRequest: (part: number, bytes: Buffer) => PartRequest,
): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const parts = Math.ceil(file.length / PART_BYTES);
  let next = 0;
  const send = async () => {
    for (let part = next++; part < parts; part = next++) {
      const bytes = file.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
      await sendPart(agent, bytes, makeRequest(part, bytes));
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, send));
  agent.destroy();
}

async function sendPart(agent: Agent, bytes: Buffer, part: PartRequest): Promise<void> {
  const { url, method, headers, status } = part;
  const sent = request(url, {
    agent,
    method,
    headers: { 'Content-Length': bytes.length, ...headers },
  });
  sent.end(bytes);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  await once(answer, 'end');
  if (answer.statusCode !== status) throw new Error(`${answer.statusCode} for ${url}`);
}

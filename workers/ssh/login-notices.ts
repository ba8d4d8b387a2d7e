import type ssh2 from 'ssh2';
import { privateParts } from '../../shared/process/private-parts.ts';

type Ask = (protocol: unknown, name: string, instruction: string, prompts: unknown[]) => void;

/**
 * Calls `hear` with what a host says in rounds that ask nothing (RFC 4256, 3.2), such as where the user is to look for a
 * request: ssh2 answers them and drops the words. Call it when the client has begun to connect.
 */
export function hearNotices(client: ssh2.Client, hear: (words: string) => void): void {
  type Internals = { _protocol: { _handlers: object } };
  const { _protocol } = privateParts<Internals>('a client of ssh2', client, ['_protocol']);
  const handlers = privateParts<{ USERAUTH_INFO_REQUEST: Ask }>(
    'the protocol of ssh2',
    _protocol._handlers,
    ['USERAUTH_INFO_REQUEST'],
  );
  const ask = handlers.USERAUTH_INFO_REQUEST;
  handlers.USERAUTH_INFO_REQUEST = (protocol, name, instruction, prompts) => {
    const words = `${name}\n${instruction}`.trim();
    if (prompts.length === 0 && words) hear(words);
    ask(protocol, name, instruction, prompts);
  };
}

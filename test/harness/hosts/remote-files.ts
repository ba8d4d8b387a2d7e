import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { HostRow } from '../../../shared/database/schema.ts';
import type { Hops } from '../../../shared/ssh/hops.ts';
import {
  type WriteFileOptions,
  writeRemoteFile,
} from '../../../workers/remote-files/write-file.ts';
import { RemoteSession } from '../../../workers/ssh/remote-session.ts';
import { connectHere } from './connect-here.ts';
import type { TestSshd } from './sshd.ts';

const patient = new AbortController().signal;

/** A worker's session on this host. */
export async function openRemoteSession({ port, hostKey, username, privateKey }: TestSshd) {
  const host = { name: 'one', address: '127.0.0.1', port, keys: [hostKey], private: true };
  const login = { hops: [host as HostRow] as Hops, username, credential: { privateKey } };
  const settings = { spoolLimitBytes: 2 ** 30, shell: undefined };
  return new RemoteSession(await connectHere(login, patient), settings);
}

/** Replaces a file by this text, unless the options say otherwise. */
export const writeText = (
  session: RemoteSession,
  path: string,
  text: string,
  options: Partial<WriteFileOptions> = {},
) =>
  writeRemoteFile(session, {
    path,
    bytes: Readable.from([Buffer.from(text)]),
    size: text.length,
    digest: createHash('sha256').update(text).digest('base64'),
    parents: false,
    exclusive: false,
    mayBeNamed: false,
    temporary: 'job-2',
    stale: ['job-1', 'job-2'],
    confirm: async () => {},
    signal: patient,
    cleanupSignal: patient,
    ...options,
  });

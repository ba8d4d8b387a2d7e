import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import { EventStream } from './event-stream.ts';
import { JobFeeds } from './job-feeds.ts';

const readAs = (owner: string, version: number) =>
  ({
    id: 'j',
    owner,
    version,
    state: 'running',
    finished: null,
    stdoutBytes: 0,
    stderrBytes: 0,
  }) as JobSummary;

/** A stream of bob's job, what the feeds are told, and whether it is open still. */
function openStream() {
  const told = { change(_row: JobSummary) {}, revoke(_username?: string) {} };
  const needs = {
    jobWatch: {
      subscribe(_row: JobSummary, onChange: typeof told.change) {
        told.change = onChange;
        return () => {};
      },
    },
    revocations: {
      onRevoked(onRevoked: typeof told.revoke) {
        told.revoke = onRevoked;
      },
    },
    log: {},
    stopping: new AbortController().signal,
  } as unknown as ConstructorParameters<typeof JobFeeds>[0];
  const feeds = new JobFeeds(needs, {} as ConstructorParameters<typeof JobFeeds>[1]);
  const out = new Writable({ write: (_chunk, _encoding, done) => done() });
  const stream = new EventStream(out as ServerResponse, { stdout: 0, stderr: 0 });
  return { told, add: () => feeds.add(stream, readAs('bob', 1)), isOpen: () => !stream.closed };
}

/** As removeUser() leaves it. */
const ofNobody = readAs('bob (removed 1)', 2);

test('the stream of a removed user ends by the revocation, also where the changed row was read before', () => {
  const { told, add, isOpen } = openStream();
  add();
  told.revoke('alice');
  told.change(readAs('bob', 2));
  expect(isOpen()).toBe(true);
  told.revoke('bob');
  expect(isOpen()).toBe(false);

  const other = openStream();
  other.add();
  other.told.change(ofNobody);
  other.told.revoke('bob');
  expect(other.isOpen()).toBe(false);
});

test('a stream that was added after the revocation ends with the changed row', () => {
  const { told, add, isOpen } = openStream();
  told.revoke('bob');
  add();
  expect(isOpen()).toBe(true);
  told.change(ofNobody);
  expect(isOpen()).toBe(false);
});

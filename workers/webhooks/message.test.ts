import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import type { JobSummary } from '../../shared/jobs/job-record.ts';
import { fromKeptRecord, messageIdOf, signedHeaders, toMessage } from './message.ts';

const row = {
  id: '01kb4tc9e1f3g5h7j9k1m3n5p7',
  kind: 'command',
  state: 'succeeded',
  label: 'echo "é\u2028"',
  finished: new Date('2026-11-22T10:00:00.000Z'),
  result: { returncode: 0, object: 'jobs/key' },
  batch: null,
} as JobSummary;
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

test('what is signed is what the library of Standard Webhooks verifies', () => {
  const message = toMessage('01kb4tc9e1f3g5h7j9k1m3n5p8', row);
  const seconds = Math.floor(Date.now() / 1_000);
  const headers = signedHeaders(secret, message, seconds);
  const verified = new Webhook(secret).verify(message.body, headers);
  expect(verified).toMatchObject({
    type: 'job.succeeded',
    timestamp: '2026-11-22T10:00:00.000Z',
    data: { id: row.id, label: row.label, result: { returncode: 0 } },
  });
  expect(message.body).not.toContain('jobs/key');
  const other = { ...headers, 'webhook-id': messageIdOf('a', 'b') };
  expect(() => new Webhook(secret).verify(message.body, other)).toThrow();
  expect(() => new Webhook(secret).verify(`${message.body} `, headers)).toThrow();
});

test('a record that was kept says what its row said', () => {
  const kept = {
    id: row.id,
    kind: 'command',
    state: 'succeeded',
    label: row.label,
    finished: '2026-11-22T10:00:00+00:00',
    result: row.result,
    batch: null,
    retry_of: null,
  };
  const { body } = toMessage('w', fromKeptRecord(kept));
  expect(JSON.parse(body)).toEqual({
    ...JSON.parse(toMessage('w', row).body),
    data: { ...JSON.parse(toMessage('w', row).body).data, retryOf: null },
  });
});

import { createHmac } from 'node:crypto';
import { type JobSummary, toJobRecord } from '../../shared/jobs/job-record.ts';

/** A message of Standard Webhooks (https://www.standardwebhooks.com), version 1. */
interface Message {
  /** Equal at every attempt, so that a receiver recognizes repetitions. */
  id: string;
  body: string;
}

/** The id of the message about a job's end. A dot would end the id in the signed text. */
export const messageIdOf = (webhook: string, job: string): string => `msg_${job}_${webhook}`;

export function toMessage(webhook: string, row: JobSummary): Message {
  const body = JSON.stringify({
    type: `job.${row.state}`,
    timestamp: row.finished,
    data: toJobRecord(row),
  });
  return { id: messageIdOf(webhook, row.id), body };
}

/** The header fields of an attempt. `secret`: as its user has it; `seconds`: the attempt's time since 1970. */
export function signedHeaders(
  secret: string,
  { id, body }: Message,
  seconds: number,
): Record<string, string> {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const mac = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': `v1,${mac}`,
  };
}

const TIMES = ['created', 'started', 'finished'] as const;

/** Restores a job's row from its kept record, which has PostgreSQL's column names and time format. */
export function fromKeptRecord(record: Record<string, unknown>): JobSummary {
  const row = Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );
  for (const name of TIMES)
    if (typeof row[name] === 'string') row[name] = new Date(String(row[name]));
  return row as JobSummary;
}

import { afterAll, beforeAll, expect, test } from 'vitest';
import { isEnded, type Job, launchAsync, openSession } from '../harness/hosts/remote.ts';
import { startReceiver, type WebhookReceiver } from '../harness/servers/webhook-receiver.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';
import { isFull } from './settings.ts';

/** Jobs that are started before each kill. */
const WAVE = 24;
const KILLED = ['worker', 'api', ...(isFull ? ['worker', 'api', 'worker'] : [])];

describeForms(missingPrograms('sshd'), 'webhooks while processes are killed', form => {
  const { stack, client, sshd } = useRemoteStack(form, {
    alone: 'its processes are killed',
    env: { WEBHOOK_PRIVATE: 'true' },
  });
  let first = 0;
  const tried = new Set<string>();
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    // Of the first attempts every fifth is answered with an error, and every fifth is cut off.
    receiver = await startReceiver(({ id }, res) => {
      if (!tried.has(id)) first++;
      const isFine = tried.has(id) || ![1, 3].includes(first % 5);
      tried.add(id);
      if (isFine) res.writeHead(200).end();
      else if (first % 5 === 1) res.writeHead(500).end();
      else res.destroy();
    });
    const given = { url: receiver.url, kinds: ['command'] };
    const made = await client.post<{ secret: string }>('/api/webhooks', given);
    receiver.secret = made.secret;
  });
  afterAll(() => receiver?.stop());

  /** Lists all jobs; undefined while no API answers. */
  const listJobs = async () => {
    const found = await client
      .get<{ items: Job[] }>('/api/jobs?kind=command&limit=1000')
      .catch(() => undefined);
    return found?.items;
  };

  test('each end arrives at least once, with a good signature and what the record says', async () => {
    const sid = await openSession(client, sshd);
    const ids: string[] = [];
    const arrived = () => new Set(receiver.received.map(({ data }) => data.id)).size;
    for (const name of KILLED) {
      await waitFor(async () => (await stack.api('/readyz')).ok, {
        what: 'the service to be ready',
        timeoutMs: 60_000,
      });
      for (let n = 0; n < WAVE; n++)
        ids.push((await launchAsync(client, sid, `sleep 0.${n % 10}; exit ${n % 3}`)).id);
      // Some have come, others end now, and some of those that came are to come again.
      await waitFor(() => arrived() >= ids.length - WAVE / 2, {
        what: 'half of the ends to arrive',
        timeoutMs: 90_000,
      });
      stack.kill(`windlass-${name}`, 'SIGKILL');
    }
    const jobs = await waitFor(
      async () => {
        const all = await listJobs();
        return all?.length === ids.length && all.every(isEnded) ? all : undefined;
      },
      { what: 'all jobs to end', timeoutMs: 120_000 },
    );
    await waitFor(() => arrived() === ids.length, {
      what: 'all ends to arrive',
      timeoutMs: 120_000,
    });
    expect(receiver.refused).toEqual([]);
    const records = new Map(jobs.map(job => [job.id, job]));
    for (const { id, type, data } of receiver.received) {
      expect(id).toMatch(new RegExp(`^msg_${data.id}_`));
      expect([type, data]).toEqual([`job.${records.get(data.id)?.state}`, records.get(data.id)]);
    }
    expect([...records.keys()].sort()).toEqual(ids.sort());
  });
});

import type { Client } from '../../servers/api-client.ts';

interface BegunUpload {
  uid: string;
  partUrl: (part: number) => string;
  headers: Record<string, string>;
}

/** A new project with a model in it. */
export async function makeModel(client: Client): Promise<string> {
  const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'uploads' });
  const body = { 'model-type': 'bench', name: 'uploads' };
  return (await client.post<{ id: string }>(`/api/projects/${pid}/models`, body)).id;
}

export async function beginUpload(
  client: Client,
  mid: string,
  parser: 'blob' | 'csv',
): Promise<BegunUpload> {
  const body = { mid, input: true, parser, aids: ['measured'] };
  const { id: uid } = await client.post<{ id: string }>('/api/uploads', body);
  return {
    uid,
    partUrl: part => `${client.base}/api/uploads/${uid}/files/0/parts/${part}`,
    headers: {
      Authorization: client.authorization,
      'Content-Type': 'application/octet-stream',
    },
  };
}

/** Resolves when the table is there. */
export async function parseUpload(client: Client, uid: string, parts: number): Promise<void> {
  const { job } = await client.post<{ job: string }>(`/api/uploads/${uid}/finished`, {
    uploaded: [parts],
  });
  for await (const { event, data } of client.events(job)) {
    if (event !== 'state' || data.state === 'running' || data.state === 'queued') continue;
    if (data.state === 'succeeded') return;
    throw new Error(JSON.stringify(data));
  }
}

import { expect, test } from 'vitest';
import { Windlass } from './windlass.ts';

test('sizes and numbers with which nothing would ever be sent are refused before anything is asked', async () => {
  let asked = 0;
  const fetch = async () => {
    asked++;
    return Response.json({ code: 'forbidden', detail: 'No.' }, { status: 403 });
  };
  const client = new Windlass({ url: 'http://127.0.0.1', token: 'x', fetch });
  for (const sending of [
    { parallel: 0 },
    { parallel: 1.5 },
    { parallel: Number.NaN },
    { partSize: 0 },
    { partSize: -1 },
  ])
    for (const target of [{ mid: 'm', parser: 'blob' }, { resume: 'u' }])
      await expect(client.upload(new File(['a'], 'a'), { ...target, ...sending })).rejects.toThrow(
        `${Object.keys(sending)} is ${Object.values(sending)}: give a whole number from 1 on.`,
      );
  expect(asked).toBe(0);
});

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { UrlencodedForm } from './urlencoded-form.ts';

const LIMITS = { fieldNameSize: 10, fieldSize: 20 };

/** What a form says that arrives in pieces of so many bytes; its error's words where it fails. */
async function read(body: string, size = body.length) {
  const form = new UrlencodedForm(LIMITS);
  const fields: unknown[][] = [];
  let file: Promise<Buffer | undefined> = Promise.resolve(undefined);
  form.on('field', (...given) => fields.push(given));
  form.on('file', (_name, stream: Readable) => {
    file = buffer(stream);
    file.catch(() => {});
  });
  const ended = once(form, 'finish');
  for (let at = 0; at < body.length; at += size) form.write(body.slice(at, at + size));
  form.end();
  try {
    await ended;
  } catch (error) {
    return { error: (error as Error).message };
  }
  return { fields, file: await file };
}

describe('a form that is urlencoded', () => {
  test('gives a file back, wherever its pieces end', async () => {
    for (const length of [0, 1, 2, 3, 4, 1_000]) {
      const bytes = randomBytes(length);
      const body = new URLSearchParams({ file: bytes.toString('base64') }).toString();
      for (const size of [1, 2, 3, 5, 7, body.length])
        expect(await read(body, size)).toEqual({ fields: [], file: bytes });
    }
  });

  test('takes a plus that is not escaped for one', async () => {
    expect(await read('file=+/+/')).toEqual({ fields: [], file: Buffer.from('+/+/', 'base64') });
  });

  test('gives fields, also beside the file, and passes empty ones over', async () => {
    for (const size of [1, 100])
      expect(await read('&a+b=%C3%A4+%26&&c&file=AA==&d=', size)).toEqual({
        fields: [
          ['a b', 'ä &', false, false],
          ['c', '', false, false],
          ['d', '', false, false],
        ],
        file: Buffer.alloc(1),
      });
  });

  test('leaves no listeners behind where the file is read more slowly than it comes', async () => {
    const form = new UrlencodedForm(LIMITS);
    let bytes = 0;
    let listeners = 0;
    form.on('file', (_name, stream: Readable) => {
      stream.on('data', (piece: Buffer) => {
        bytes += piece.length;
        listeners = Math.max(listeners, stream.listenerCount('close'));
        stream.pause();
        setImmediate(() => stream.resume());
      });
    });
    const ended = once(form, 'finish');
    form.write('file=');
    for (let piece = 0; piece < 64; piece++) form.write('A'.repeat(64 << 10));
    form.end();
    await ended;
    expect(bytes).toBe(3 << 20);
    expect(listeners).toBeLessThan(5);
  });

  test('cuts a value that is too long', async () => {
    expect((await read(`a=${'x'.repeat(20)}&b=${'x'.repeat(21)}`)).fields).toEqual([
      ['a', 'x'.repeat(20), false, false],
      ['b', 'x'.repeat(21), false, true],
    ]);
    expect((await read(`a=${'x'.repeat(9_999)}`)).fields).toEqual([['a', '', false, true]]);
  });

  test('refuses what is no base64, or no form', async () => {
    for (const body of [
      'file=AAA',
      'file=A',
      'file=AA==AA==',
      'file=A%3',
      'file=A%zzA',
      'file=====',
      'file=AA A',
    ])
      expect(await read(body, 3)).toEqual({
        error: expect.stringContaining('file: is not base64'),
      });
    expect(await read('a=%zz')).toEqual({ error: expect.stringContaining('a: is not UTF-8') });
    expect(await read('aaaaaaaaaaa=1', 4)).toEqual({
      error: expect.stringContaining('has too long a name'),
    });
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readProcfile } from './procfile.ts';

const node = process.execPath;

describe('readProcfile', () => {
  test('reads the one that is shipped: the API first, then a process for each kind of work', () => {
    const text = readFileSync(new URL('../../Procfile', import.meta.url), 'utf8');
    const [first = [], then = []] = readProcfile({ text });
    expect(first.map(({ command }) => command)).toEqual([[node, 'dist/api/main.js']]);
    expect(then.map(({ command }) => command)).toEqual(
      ['remote', 'video', 'parse', 'upkeep'].map(kind => [node, 'dist/workers/main.js', kind]),
    );
  });

  test('runs as many of each as are asked for', () => {
    const groups = readProcfile({ text: 'api: node a\nremote: node w', each: 2 });
    expect(groups.map(group => group.map(({ name }) => name))).toEqual([
      ['api.1', 'api.2'],
      ['remote.1', 'remote.2'],
    ]);
  });

  test('passes over comments and empty lines', () => {
    expect(readProcfile({ text: '# all\r\n\r\n  api:   node a\r\n' })[0]).toHaveLength(1);
  });

  test('gives what needs a shell to one, and expects no word from it', () => {
    for (const command of ['node a --x="b c"', 'PORT=1 node a', 'a && b', 'echo $HOME']) {
      const [, [spec] = []] = readProcfile({ text: `web: ${command}` });
      expect(spec).toMatchObject({ command: ['/bin/sh', '-c', command], readyMessage: false });
    }
  });

  test.each([
    ['api node a', 'Line 1 of the Procfile is not "name: command".'],
    ['# x\napi:', 'Line 2 of the Procfile is not "name: command".'],
    ['api: a\napi: b', 'Line 2 of the Procfile names api again.'],
  ])('refuses %j', (text, message) => {
    expect(() => readProcfile({ text })).toThrow(message);
  });
});

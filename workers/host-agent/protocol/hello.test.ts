import { expect, test } from 'vitest';
import { parseHello } from './hello.ts';

const say = (fences: string) => `windlass-agent 1 node boot ${fences} 2 1024 /home/a b`;

test('parses the hello of an agent', () => {
  expect(parseHello(say('17.0.1a2b-3-4-5c6d'), '/bin/sh')).toEqual({
    version: 1,
    node: 'node',
    boot: 'boot',
    fences: '17.0.1a2b-3-4-5c6d',
    cores: 2,
    freeBytes: 1024,
    home: '/home/a b',
    shell: '/bin/sh',
  });
});

test.each([
  '',
  '-',
  '17.0',
  '17.0.\u0000\u0001\u0002\u0003\u0004\u0005',
  `17.0.${'a'.repeat(200)}`,
])('%j is refused as the identity of a directory of fences', fences => {
  expect(() => parseHello(say(fences), '/bin/sh')).toThrow(
    expect.objectContaining({ code: 'agent_startup_failed' }),
  );
});

test('a boot that is no word is refused', () => {
  const said = say('17.0.1a2b-3-4-5c6d').replace(' boot ', ' bo\0ot ');
  expect(() => parseHello(said, '/bin/sh')).toThrow(
    expect.objectContaining({ code: 'agent_startup_failed' }),
  );
});

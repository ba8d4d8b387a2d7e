import { expect, test } from 'vitest';
import { validateRawJson } from './validate-raw-json.ts';

const parameter = (text: string) => validateRawJson(Buffer.from(text), 'parameter');
const whole = (text: string) => validateRawJson(Buffer.from(text), 'object');
const wrongFields = (exact: object) =>
  'wrong' in exact ? (exact.wrong as { field: string }[]).map(({ field }) => field) : exact;

/** Values that parsing and serializing would change. */
const DELICATE = [
  'null',
  '-0',
  '1e400',
  '12345678901234567890123456789012345678901234567890',
  '1.10',
  '"\\ud800"',
  '"\\u0000"',
  '"\\/\\u00e9é😀\u2028"',
  '{"b":1,"a":2,"b":3}',
  '{"__proto__":{"x":1},"":0}',
  '[ 1 ,\n\t2 ]',
  '{}',
  '[]',
  '""',
];

test('a value is as sent, without surrounding white space', () => {
  for (const value of DELICATE) {
    expect(parameter(`{"value":${value}}`)).toEqual({ text: value });
    expect(parameter(` {\n"input" : true , "value" :\r\n ${value}\t} \n`)).toEqual({
      text: value,
      input: true,
    });
    const body = ` {"a":${value}} `;
    expect(whole(body)).toEqual({ text: body });
  }
  expect(parameter('{"\\u0076alue":1}')).toEqual({ text: '1' });
});

test('names members that are missing, unknown, of the wrong type or repeated', () => {
  const cases: [string, string[]][] = [
    ['{}', ['value']],
    ['{"input":true}', ['value']],
    ['{"value":1,"input":"yes"}', ['input']],
    ['{"value":1,"input":{"a":true}}', ['input']],
    ['{"value":1,"input":null}', ['input']],
    ['{"value":1,"valu\\u0065":2}', ['value']],
    ['{"value":1,"input":true,"input":true}', ['input']],
    ['{"value":{"value":1,"value":2}}', []],
    ['{"colour":1,"":[]}', ['colour', '', 'value']],
    ['[{"value":1}]', ['body']],
    ['"value"', ['body']],
    ['null', ['body']],
  ];
  for (const [text, fields] of cases)
    expect([text, fields.length ? wrongFields(parameter(text)) : []]).toEqual([text, fields]);
  expect(wrongFields(whole('[]'))).toEqual(['body']);
  expect(whole('{"a":1,"a":2}')).toMatchObject({ text: '{"a":1,"a":2}' });
});

test('names a hundred of a million unknown members', () => {
  const many = `{${'"x":1,'.repeat(1_000_000)}"value":1}`;
  expect(wrongFields(parameter(many))).toHaveLength(100);
});

test('depth counts open brackets, those of the body included', () => {
  const nested = (depth: number) => `{"value":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  expect(parameter(nested(100))).toHaveProperty('text');
  expect(parameter(nested(101))).toEqual({ refused: 'body.too_deep' });
  expect(parameter(`{"value":${'{"a":'.repeat(5_000_000)}`)).toEqual({ refused: 'body.too_deep' });
});

test('refuses invalid UTF-8', () => {
  const bytes = Buffer.from('{"value":"x"}');
  bytes[10] = 0xff;
  expect(validateRawJson(bytes, 'parameter')).toEqual({ refused: 'body.not_utf8' });
});

test('is as strict as JSON.parse', () => {
  const parts = [
    ...['{', '}', '[', ']', ',', ':', '"', '\\', '/', '-', '+', '.', '0', '1', 'e', 'E', ' ', '\n'],
    ...['\t', '\r', '\v', '\f', '\0', '\u00a0', '\u2028', '\ufeff', '\x1f', '\x7f', 'true', 'null'],
    ...[
      'NaN',
      'Infinity',
      'tru',
      "'",
      '//',
      '/*',
      '*/',
      '"a"',
      '\\u',
      '\\u00e9',
      '\\x',
      'é',
      '1.5',
    ],
    ...['1e5', '01', '1.', '.5', '{"a":1}', '[1,2]', '\\ud800', '0x1'],
  ];
  let seed = 42;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((seed / 2 ** 31) * below);
  };
  let good = 0;
  const compare = (inner: string) => {
    const text = `{"a":${inner}}`;
    let isJson = true;
    try {
      JSON.parse(text);
      good++;
    } catch {
      isJson = false;
    }
    expect([text, 'text' in whole(text)]).toEqual([text, isJson]);
  };
  for (const value of DELICATE) compare(value);
  for (const part of parts) {
    for (const text of [part, `"${part}"`, `[${part}]`, `1${part}`, `${part}1`, `"\\${part}"`])
      compare(text);
  }
  for (let i = 0; i < 20_000; i++) {
    const length = 1 + random(6);
    compare(Array.from({ length }, () => parts[random(parts.length)]).join(''));
  }
  expect(good).toBeGreaterThan(500);
});

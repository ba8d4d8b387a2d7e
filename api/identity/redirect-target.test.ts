import { expect, test } from 'vitest';
import { safeRedirectTarget } from './redirect-target.ts';

test('a path on this origin is kept', () => {
  for (const target of [
    '/',
    '/projects/1?tab=a%20b&x=//y#part',
    '/a/../b',
    '/a//b',
    '/@other.example',
    '/:8080',
    '/%5Cother.example',
    '/caf\u00e9',
  ])
    expect(safeRedirectTarget(target)).toBe(target);
});

test('a target that can lead to another origin becomes /', () => {
  for (const target of [
    undefined,
    '',
    'projects',
    '//other.example',
    '///other.example',
    '/\\other.example',
    '\\\\other.example',
    '/a\\b',
    '/\t/other.example',
    '/\n/other.example',
    ' //other.example',
    '/ /other.example',
    '\u0000/',
    '/a\u007f',
    '/a\r\nSet-Cookie: x',
    '/..//other.example',
    '/.//other.example',
    '/%2e%2e//other.example',
    'https://other.example/',
    'javascript:alert(1)',
    `/${'x'.repeat(2_048)}`,
  ])
    expect([target, safeRedirectTarget(target)]).toEqual([target, '/']);
});

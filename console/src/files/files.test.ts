import { expect, test } from 'vitest';
import { cleanFolder, extensionOf, join, nameOf, parentOf } from '../service/paths.ts';
import { entryAt, findEntries, type Listing, sortEntries } from './entries.ts';
import { expandPattern, findGap, findPattern, isPattern } from './frame-pattern.ts';
import { readRows } from './read-rows.ts';
import { findSeparator, readText } from './read-text.ts';

const listing: Listing = {
  path: '/data',
  names: ['frame 10.png', 'old', 'frame 9.png', 'Notes.txt'],
  sizes: [30, 4_096, 20, 20],
  types: ['f', 'd', 'f', 'f'],
  mtimes: ['2026-01-02', '2026-01-01', '2026-01-03', '2026-01-04'].map(day => `${day}T00:00:00Z`),
};
const namesOf = (order: 'name' | 'size' | 'time', isDown = false, find = '', of = listing) =>
  [...findEntries(of, sortEntries(of, order, isDown), find)].map(at => entryAt(of, at).name);

test('entries are sorted as people sort, folders first', () => {
  expect(namesOf('name')).toEqual(['old', 'frame 9.png', 'frame 10.png', 'Notes.txt']);
  expect(namesOf('name', true)).toEqual(['old', 'Notes.txt', 'frame 10.png', 'frame 9.png']);
  expect(namesOf('size', true)).toEqual(['old', 'frame 10.png', 'Notes.txt', 'frame 9.png']);
  expect(namesOf('time')).toEqual(['old', 'frame 10.png', 'frame 9.png', 'Notes.txt']);
  expect(namesOf('name', false, 'FRAME')).toEqual(['frame 9.png', 'frame 10.png']);
  expect(namesOf('name', false, 'nothing')).toEqual([]);
  const accents = { ...listing, names: ['z2', 'é10', 'é9', 'a'], types: listing.types.slice(2) };
  expect(namesOf('name', false, '', accents)).toEqual(['a', 'é9', 'é10', 'z2']);
});

test('paths lead up and down, as they are on the host', () => {
  expect([join('/', 'a'), join('/a', 'b')]).toEqual(['/a', '/a/b']);
  expect(['/a/b', '/a', '/'].map(parentOf)).toEqual(['/a', '/', '/']);
  expect(['/a/b', '/a', '/'].map(nameOf)).toEqual(['b', 'a', '']);
  expect(['', '/', 'a//b/', '/a/../b'].map(cleanFolder)).toEqual(['/', '/', '/a/b', '/a/../b']);
  expect(['a.TAR.GZ', '.profile', 'none', 'a.b/c'].map(extensionOf)).toEqual([
    ...['gz', 'profile', '', ''],
  ]);
});

test('a numbered file belongs to the longest row of numbers that it is in', () => {
  const padded = ['f_0007.png', 'f_0008.png', 'f_0009.png', 'f_0010.png', 'g_0009.png'];
  expect(findPattern('f_0009.png', padded)).toBe('f_%04d.png');
  const plain = ['run2-8.jpg', 'run2-9.jpg', 'run2-10.jpg', 'run2-11.jpg', 'run3-8.jpg'];
  expect(findPattern('run2-10.jpg', plain)).toBe('run2-%d.jpg');
  const suffixed = ['t001_v2.png', 't002_v2.png', 't003_v2.png'];
  expect(findPattern('t002_v2.png', suffixed)).toBe('t%03d_v2.png');
  expect(findPattern('alone1.png', ['alone1.png', 'alone3.png'])).toBe(undefined);
  const nanoseconds = 'f_1704067200000000000.png';
  expect(findPattern(nanoseconds, [nanoseconds])).toBe(undefined);
  expect(findPattern('no number.png', ['no number.png'])).toBe(undefined);
  expect(findPattern('100%1.png', ['100%1.png', '100%2.png'])).toBe(undefined);
});

test('a pattern takes what the service will take', () => {
  const names = ['a1.png', 'a2.png', 'a3.png', 'a5.png', 'a10.png', 'a01.png', '.a1.png', 'b.jpg'];
  expect(expandPattern('a%d.png', names)).toEqual(['a1.png', 'a2.png', 'a3.png']);
  expect(expandPattern('a%02d.png', names)).toEqual(['a01.png']);
  expect(expandPattern('a%d.png', names, { first: 3, last: 5 })).toEqual([
    ...['a3.png', 'a4.png', 'a5.png'],
  ]);
  expect(expandPattern('a%d.png', names, { step: 2, last: 4 })).toEqual(['a1.png', 'a3.png']);
  expect(findGap('a%d.png', names)).toEqual({ name: 'a4.png', after: 2 });
  expect(findGap('a%d.png', names, { step: 2, first: 3 })).toEqual(undefined);
  expect(findGap('a%d.png', names, { last: 3 })).toBe(undefined);
  expect(findGap('a%d.png', names, { first: 7 })).toBe(undefined);
  expect(findGap('a*.png', names)).toBe(undefined);
  expect(expandPattern('a*.png', names)).toEqual([
    ...['a01.png', 'a1.png', 'a2.png', 'a3.png', 'a5.png', 'a10.png'],
  ]);
  expect(expandPattern('*.p*g', names, { first: 1, last: 4, step: 2 })).toEqual([
    ...['a1.png', 'a3.png'],
  ]);
  expect(expandPattern('a+(b).png', ['a+(b).png', 'aab.png'])).toEqual([]);
  expect(expandPattern('a.p*', ['axpng', 'a.png'])).toEqual(['a.png']);
  expect(['%d', 'a%05d', '*', 'a*b*'].map(isPattern)).toEqual([true, true, true, true]);
  expect(['a', '%d%d', '*%d', 'b/%d', '%s'].map(isPattern)).toEqual(Array(5).fill(false));
});

test('the first rows of separated values are shown as they are written', () => {
  const read = (text: string, isCut = false) => readRows(text, { separator: ',', most: 3, isCut });
  expect(read('\ufeffa,b\r\n1.50,"x, ""y""\nz"\r\n,\n4,5\n')).toEqual([
    ['a', 'b'],
    ['1.50', 'x, "y"\nz'],
    ['', ''],
  ]);
  expect(read('a,b\n1,2\n3,', true)).toEqual([
    ['a', 'b'],
    ['1', '2'],
  ]);
  expect(read('a\n"never ended', false)).toEqual([['a'], ['never ended']]);
  expect(['a;b,c;d\n1,2,3,4', 'a\tb', 'a b'].map(findSeparator)).toEqual([';', '\t', ',']);
});

test('what is no text is not shown as one', () => {
  const bytes = (...values: number[]) => new Uint8Array(values);
  expect(readText(new TextEncoder().encode('Größe'))).toBe('Größe');
  // The end of the bytes cuts a character.
  expect(readText(new TextEncoder().encode('Größe').subarray(0, 3))).toBe('Gr');
  expect(readText(bytes(0x47, 0xf6))).toBe('Gö');
  expect(readText(bytes(0xff, 0xfe, 0x47, 0, 0xf6, 0))).toBe('Gö');
  expect(readText(bytes(0x7f, 0x45, 0x4c, 0x46, 0))).toBe(undefined);
});

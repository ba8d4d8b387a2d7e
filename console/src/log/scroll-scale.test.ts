import { expect, test } from 'vitest';
import { ScrollScale } from './scroll-scale.ts';

const open = (lines: number) => {
  const scale = new ScrollScale();
  scale.resize({ lines, rowHeight: 20, view: 600 });
  return scale;
};

test('a short log is scrolled px by px', () => {
  const scale = open(1_000);
  expect(scale.height).toBe(20_000);
  scale.scrolledTo(1_234);
  expect([scale.top, scale.scrollTop]).toEqual([1_234, 1_234]);
  scale.moveToEnd();
  expect([scale.top, scale.isAtEnd]).toEqual([19_400, true]);
});

test('a log that is higher than an element can be has a lower one, whose ends are its ends', () => {
  const scale = open(10_000_000);
  expect(scale.height).toBe(16_000_000);
  scale.moveToEnd();
  expect(scale.scrollTop).toBe(16_000_000 - 600);
  expect(scale.top).toBe(200_000_000 - 600);
  // The thumb, to the middle.
  scale.scrolledTo((16_000_000 - 600) / 2);
  expect(scale.top).toBeCloseTo((200_000_000 - 600) / 2, -2);
  // A wheel moves the lines by what it says, there too.
  const before = scale.top;
  scale.scrolledTo(scale.scrollTop + 120);
  expect(scale.top).toBeCloseTo(before + 120, 0);
});

test('a line is shown in the middle, the first and the last at the ends', () => {
  const scale = open(1_000);
  scale.showLine(500);
  expect(scale.top).toBe(500 * 20 - 290);
  scale.showLine(510);
  expect(scale.top).toBe(500 * 20 - 290);
  scale.showLine(0);
  expect(scale.top).toBe(0);
  scale.showLine(999);
  expect(scale.isAtEnd).toBe(true);
});

test('a log that is lower than what is seen does not scroll', () => {
  const scale = open(3);
  expect([scale.height, scale.isAtEnd]).toEqual([600, true]);
  scale.scrolledTo(50);
  expect(scale.top).toBe(0);
});

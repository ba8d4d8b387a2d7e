import { expect, test } from 'vitest';
import { type Part, type StoredPart, UploadPlan } from './upload-plan.ts';

const KB = 1 << 10;
const MB = 1 << 20;

/** All parts that are left, in order. */
function drain(plan: UploadPlan): Part[] {
  const parts: Part[] = [];
  for (let part = plan.next(); part; part = plan.next()) parts.push(part);
  return parts;
}

const sizesOf = (parts: Part[]) => parts.map(({ size }) => size);
const digestAt = ({ fid, start, size }: Part) => `${fid} ${start} ${size}`;
const store = (part: Part): StoredPart => ({
  fid: part.fid,
  pid: part.pid,
  size: part.size,
  digest: digestAt(part),
});

/** Each byte of each file is in one part, and the numbers have no gap. */
function expectWhole(sizes: number[], parts: Part[], counts: number[]): void {
  for (const [fid, size] of sizes.entries()) {
    const own = parts.filter(part => part.fid === fid);
    expect(own.map(({ pid }) => pid)).toEqual(own.map((_, pid) => pid));
    expect(counts[fid]).toBe(own.length);
    let at = 0;
    for (const part of own) {
      expect(part.start).toBe(at);
      at += part.size;
    }
    expect(at).toBe(size);
  }
}

test('a file is cut evenly, and an empty one is a part', () => {
  const plan = new UploadPlan([5, 0, 4], { partSize: 2, stored: [] });
  const parts = drain(plan);
  expect(sizesOf(parts)).toEqual([2, 2, 1, 0, 2, 2]);
  expectWhole([5, 0, 4], parts, plan.counts);
  expect(sizesOf(drain(new UploadPlan([20 * MB], { stored: [] })))).toEqual([
    8 * MB,
    8 * MB,
    4 * MB,
  ]);
});

test('parts get smaller from the first one on that has not come through', () => {
  const plan = new UploadPlan([20 * MB, MB], { stored: [] });
  const [first, , third] = drain(plan) as [Part, Part, Part];
  plan.pass(first);
  plan.pass(third);
  plan.shrink(4 * MB);
  expect(plan.sent).toBe(8 * MB);
  const parts = drain(plan);
  expect(parts.map(({ pid, start }) => [pid, start / MB])).toEqual([
    ...[1, 2, 3].map(n => [n, 4 * (n + 1)]),
    [0, 0],
  ]);
  expectWhole([20 * MB, MB], [first, ...parts], plan.counts);
});

test.each([
  ['the first parts of one size', [8, 8]],
  ['parts that got smaller', [8, 4, 4, 2]],
  ['with a gap', [2, undefined, 2, 2]],
  ['with a gap where they got smaller', [8, undefined, undefined, 4, 4]],
  ['with a gap at the beginning', [undefined, 2, 2]],
])('who resumes finds what is stored: %s', (_what, sizes) => {
  const size = 33 * MB + 1;
  const given = new Map<number, number>();
  let start = 0;
  const stored: StoredPart[] = [];
  for (const [pid, mb] of sizes.entries()) {
    const later = sizes.slice(pid).find(one => one !== undefined) ?? 0;
    const part = { fid: 0, pid, start, size: (mb ?? later) * MB };
    if (mb !== undefined) {
      stored.push(store(part));
      given.set(pid, start);
    }
    start += part.size;
  }
  const plan = new UploadPlan([size], { stored });
  const parts = drain(plan);
  expectWhole([size], parts, plan.counts);
  for (const [pid, at] of given) expect(parts[pid]?.start).toBe(at);
});

test('the end of a file alone tells no size', () => {
  const stored = [{ fid: 0, pid: 2, size: 4 * MB, digest: 'any' }];
  expect(sizesOf(drain(new UploadPlan([20 * MB], { stored })))).toEqual([8, 8, 4].map(n => n * MB));
});

test('whatever is stored, all bytes are sent, in no fewer parts', () => {
  let seed = 17;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let round = 0; round < 500; round++) {
    const sizes = Array.from({ length: 1 + random(3) }, () => random(3) * 3 * MB + random(5) * 300);
    const stored: StoredPart[] = [];
    for (const [fid, size] of sizes.entries())
      for (let pid = 0; pid < random(8) && pid < size; pid++)
        if (random(3)) {
          const part = [256 * KB, 512 * KB, MB, 2 * MB, 64 * KB, random(3 * MB)][random(6)] ?? 0;
          stored.push({ fid, pid, size: part, digest: 'any' });
        }
    const plan = new UploadPlan(sizes, { partSize: MB, stored });
    const parts = drain(plan);
    expectWhole(sizes, parts, plan.counts);
    for (const { fid, pid } of stored) expect(pid).toBeLessThan(plan.counts[fid] ?? 0);
    const sent = parts.slice(0, random(parts.length));
    for (const part of sent) {
      part.isRead = true;
      part.digest = digestAt(part);
    }
    plan.compare([...stored, ...sent.map(store)]);
    if (plan.isThrough) continue;
    plan.shrink(256 * KB);
    const left = drain(plan);
    const kept = sent
      .slice(0, parts.length + 1)
      .filter(part => !left.some(one => one.fid === part.fid && one.pid <= part.pid));
    expectWhole(sizes, [...kept, ...left], plan.counts);
    for (const { fid, pid } of stored) expect(pid).toBeLessThan(plan.counts[fid] ?? 0);
  }
});

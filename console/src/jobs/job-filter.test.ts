import { describe, expect, test } from 'vitest';
import { readFilter, toQuery } from './job-filter.ts';

const now = Date.parse('2026-11-25T12:00:00Z');
const read = (query: string) => toQuery(readFilter(new URLSearchParams(query)), { me: 'ada', now });

describe('filters of jobs in an address', () => {
  test('what the pages of files ask for is left out unless it is meant', () => {
    expect(read('').kind).not.toContain('browse');
    expect(read('kind=look').kind).toEqual(['browse', 'file']);
    expect(read('kind=video').kind).toEqual(['video']);
  });

  test('what has come to an end of its own is no success for that', () => {
    expect(read('state=Completed').state).toEqual(['succeeded']);
    expect(read('state=Succeeded').state).toBeUndefined();
  });

  test('a period ends now, times are those that are given', () => {
    expect(read('within=day')).toMatchObject({ since: '2026-11-24T12:00:00.000Z' });
    const range = 'since=2026-11-01T00:00:00Z&until=2026-11-02T00:00:00%2B01:00';
    expect(read(range)).toMatchObject({
      since: '2026-11-01T00:00:00.000Z',
      until: '2026-11-01T23:00:00.000Z',
    });
    expect(read('since=soon').since).toBeUndefined();
  });

  test("others' work is not looked into", () => {
    const query = 'search=x&project=p&model=m&session=s&host=lab';
    expect(read(query)).toMatchObject({ label: 'x', project: 'p', model: 'm', session: 's' });
    expect(read(`${query}&by=name`)).toMatchObject({ name: 'x', label: undefined });
    expect(read(`${query}&owner=ada`)).toMatchObject({ label: 'x' });
    const asked = read(`${query}&owner=*`);
    for (const name of ['label', 'name', 'project', 'model', 'session'])
      expect(asked).not.toHaveProperty(name);
    expect(asked).toMatchObject({ owner: '*', host: 'lab' });
  });

  test('what no filter is called is no filter', () => {
    expect(read('state=constructor').state).toBeUndefined();
    expect(read('within=toString').since).toBeUndefined();
  });
});

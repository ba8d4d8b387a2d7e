import { expect, test } from 'vitest';
import { readAudit } from './audit.ts';

test('holes are named, with their severity', () => {
  const found = { name: 'express', severity: 'high', range: '<5.0.0', via: [] };
  expect(readAudit(JSON.stringify({ vulnerabilities: { express: found } }))).toEqual([
    'express <5.0.0 (high)',
  ]);
  expect(readAudit('{"auditReportVersion": 2, "vulnerabilities": {}}')).toEqual([]);
});

test('a registry that does not answer is no finding', () => {
  for (const text of ['', 'Not found', '{"message": "405 Method Not Allowed", "statusCode": 405}'])
    expect(readAudit(text)).toBeUndefined();
});

import { expect, test } from 'vitest';
import { fingerprint, keyBytes, keyLine } from './keys.ts';

test('a fingerprint is the one that ssh-keygen -l prints', () => {
  const line = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';
  const printed = 'SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU';
  expect(fingerprint(keyBytes(`${line} a comment\n`))).toBe(printed);
  expect(keyLine(keyBytes(line))).toBe(line);
});

import { afterAll, expect, test } from 'vitest';
import { parseCertificate, type SshCertificate } from '../../shared/ssh/certificates.ts';
import { keyBytes } from '../../shared/ssh/keys.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import {
  certify,
  certifyHost,
  type KeyFile,
  type KeyType,
  makeKeyFile,
} from '../../test/harness/hosts/host-authority.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { findCertificateProblem } from './host-certificate.ts';

describeUnless(missingPrograms('ssh'), 'certificates of hosts', () => {
  const directory = makeTempDir('authorities');
  afterAll(() => directory.remove());
  const makeKey = (type?: KeyType, bits?: string) => makeKeyFile(directory.path, type, bits);
  const [authority, stranger, key] = [makeKey(), makeKey(), makeKey()];

  const read = (line: string) => parseCertificate(line) as SshCertificate;
  const find = (line: string, wanted: { by?: KeyFile; address?: string; now?: Date } = {}) =>
    findCertificateProblem(read(line), {
      address: wanted.address ?? 'node.example.org',
      authorities: [keyBytes((wanted.by ?? authority).public)],
      now: wanted.now,
    });

  const TYPES: [KeyType, string?][] = [
    ['ed25519'],
    ['ecdsa', '256'],
    ['ecdsa', '384'],
    ['ecdsa', '521'],
    ['rsa', '2048'],
  ];
  test.each(TYPES)(
    'an authority of the type %s %s is understood, and so is such a host',
    (...type) => {
      const own = makeKey(...type);
      const line = certifyHost(authority, own, 'node.example.org');
      expect(find(line)).toBeUndefined();
      expect(read(line).publicKey.equals(keyBytes(own.public))).toBe(true);
      // The numbers of ECDSA have zeros in front in one of 256.
      for (let n = 0; n < 8; n++)
        expect(find(certifyHost(own, key, 'node.example.org'), { by: own })).toBeUndefined();
    },
  );

  test('both hashes of RSA count, and SHA-1 does not', () => {
    const rsa = makeKey('rsa');
    for (const [algorithm, problem] of [
      ['rsa-sha2-256', undefined],
      ['rsa-sha2-512', undefined],
      ['ssh-rsa', 'is signed with SHA-1 (ssh-rsa)'],
    ] as const) {
      const line = certifyHost(rsa, key, 'node.example.org', '-t', algorithm);
      expect([algorithm, find(line, { by: rsa })]).toEqual([algorithm, problem]);
    }
  });

  test('a name fits as in OpenSSH: in small letters, with wildcards, and none fits no host', () => {
    for (const [names, fits] of [
      ['other.example.org,node.example.org', true],
      ['*.example.org', true],
      ['node.example.???', true],
      ['node', false],
      ['NODE.example.org', false],
      ['node.example.org.evil', false],
      ['*.example', false],
    ] as const)
      expect([
        names,
        find(certifyHost(authority, key, names), { address: 'Node.example.ORG' }),
      ]).toEqual([names, fits ? undefined : `is for ${names}, not for node.example.org`]);
    expect(find(certify(authority, key, '-h'))).toBe('names no host that it is for');
    expect(find(certifyHost(authority, key, '10.0.0.7'), { address: '10.0.0.7' })).toBeUndefined();
  });

  test('what is not valid now, or is for something else, is refused', () => {
    const line = certifyHost(
      authority,
      key,
      'node.example.org',
      '-V',
      '20200101000000Z:20210101000000Z',
    );
    expect(find(line)).toBe('was valid until 2021-01-01T00:00:00.000Z');
    const times = {
      '2019-12-31T23:59:59Z': /is valid from 2020-01-01.* on; here it is 2019/,
      '2021-01-01T00:00:00Z': /until/,
    };
    for (const [now, problem] of Object.entries(times))
      expect(find(line, { now: new Date(now) })).toMatch(problem);
    for (const now of ['2020-01-01T00:00:00Z', '2020-12-31T23:59:59Z'])
      expect(find(line, { now: new Date(now) })).toBeUndefined();
    const later = { ...read(line), validAfter: 2n ** 63n, validBefore: 2n ** 64n - 1n };
    const wanted = { address: 'node.example.org', authorities: [keyBytes(authority.public)] };
    expect(findCertificateProblem(later, wanted)).toMatch(/^is valid from a time after all/);
    expect(find(certify(authority, key, '-n', 'node.example.org'))).toBe(
      "is a user's, not a host's",
    );
    expect(find(certifyHost(stranger, key, 'node.example.org'))).toMatch(
      /^is signed by SHA256:.{43}, which is no pinned authority$/,
    );
    const optional = certifyHost(authority, key, 'node.example.org', '-O', 'critical:x@y=z');
    expect(find(optional)).toBe("has critical options that a host's has not: x@y");
    const extended = certifyHost(authority, key, 'node.example.org', '-O', 'extension:x@y=z');
    expect(find(extended)).toBeUndefined();
  });

  test.each(['ed25519', 'ecdsa', 'rsa'] as const)(
    'no bit of what %s has signed may be another',
    type => {
      const by = makeKey(type);
      const good = read(certifyHost(by, key, 'node.example.org'));
      const wanted = { address: 'node.example.org', authorities: [keyBytes(by.public)] };
      for (let at = 0; at < good.signed.length; at += 7) {
        const signed = Buffer.from(good.signed);
        signed[at] = (signed[at] ?? 0) ^ 1;
        expect(findCertificateProblem({ ...good, signed }, wanted)).toMatch(/signature/);
      }
      for (let at = 0; at < good.signature.length; at++) {
        const signature = Buffer.from(good.signature);
        signature[at] = (signature[at] ?? 0) ^ 1;
        expect(findCertificateProblem({ ...good, signature }, wanted)).toMatch(/signature|SHA-1/);
        expect(
          findCertificateProblem({ ...good, signature: good.signature.subarray(0, at) }, wanted),
        ).toMatch(/signature/);
      }
    },
  );
});

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Files, in PEM. */
export interface CertificateFiles {
  key: string;
  certificate: string;
}

export interface Authority extends CertificateFiles {
  /** A certificate for these names, such as `DNS:localhost` or `IP:127.0.0.1`. */
  issue(name: string, ...names: string[]): CertificateFiles;
}

/** An authority that nobody trusts by itself. Needs openssl. */
export function makeAuthority(directory: string, name: string): Authority {
  const make = (file: string, ...more: string[]): CertificateFiles => {
    const files = {
      key: join(directory, `${file}.key`),
      certificate: join(directory, `${file}.pem`),
    };
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', `/CN=${file}`],
        ...['-keyout', files.key, '-out', files.certificate, ...more],
      ],
      { stdio: 'ignore' },
    );
    return files;
  };
  const own = make(name);
  return {
    ...own,
    issue: (file, ...names) =>
      make(
        file,
        ...['-CA', own.certificate, '-CAkey', own.key],
        ...['-addext', 'basicConstraints=critical,CA:FALSE'],
        ...['-addext', `subjectAltName=${names.join(',')}`],
      ),
  };
}

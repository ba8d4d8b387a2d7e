import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect, createSecureContext, type TLSSocket } from 'node:tls';
import { ConfigError } from '../settings/config.ts';
import { parametersOf } from './host-urls.ts';
import { SYSTEM } from './tls-parameters.ts';

/** How a server is connected to with TLS, for both drivers: they understand the parameters of a URL differently. */
export interface DatabaseTls {
  options: ConnectionOptions;
  /** Without a question before, as PostgreSQL 17 and newer can. */
  isDirect: boolean;
}

/** Undefined: without TLS. Throws a ConfigError where one of its files cannot be read. */
export function tlsOf(url: string): DatabaseTls | undefined {
  const parameters = parametersOf(url);
  const mode = parameters.get('sslmode') ?? 'disable';
  if (mode === 'disable') return undefined;
  const given = (name: string) => parameters.get(name) ?? undefined;
  const read = (name: string) => {
    const path = given(name);
    return path === undefined || path === SYSTEM ? undefined : readCertificates(name, path);
  };
  const root = given('sslrootcert');
  const options: ConnectionOptions = {
    ca: read('sslrootcert'),
    cert: read('sslcert'),
    key: read('sslkey'),
    passphrase: given('sslpassword'),
    // As libpq has it: `require` without an authority believes everybody, and with one means verify-ca.
    rejectUnauthorized: mode !== 'require' || root !== undefined,
  };
  if (mode !== 'verify-full') options.checkServerIdentity = () => undefined;
  checkFiles(options);
  return { options, isDirect: given('sslnegotiation') === 'direct' };
}

/** What does not fit would otherwise fail each connection, as if the server could not be reached. */
function checkFiles(options: ConnectionOptions): void {
  try {
    createSecureContext(options);
  } catch (error) {
    const why = (error as Error).message;
    throw new ConfigError([`sslcert, sslkey and sslpassword of the database do not fit: ${why}.`]);
  }
}

function readCertificates(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ConfigError([`${name} of the database cannot be read: ${(error as Error).message}.`]);
  }
}

/** PostgreSQL's protocol, "SSLRequest", and what a server answers that goes on with TLS. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const [YES] = Buffer.from('S');
/** In the words of `pg`. */
const NO_TLS = 'The server does not support SSL connections';

/**
 * Goes on with TLS on a socket that connects. Resolves after the handshake: the driver is to get a socket whose server is
 * known, and sends the password at once.
 */
export async function secure(
  socket: Socket,
  host: string,
  { options, isDirect }: DatabaseTls,
): Promise<TLSSocket> {
  await once(socket, 'connect');
  if (!isDirect) {
    socket.write(SSL_REQUEST);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    // More than the one byte came from somebody between, before anything was encrypted.
    if (answer[0] !== YES || answer.length > 1) throw new Error(NO_TLS);
  }
  const secured = connect({
    ...options,
    socket,
    // By which the certificate is checked; `servername` must be no address (RFC 6066, 3).
    host,
    servername: isIP(host) ? undefined : host,
    ALPNProtocols: isDirect ? ['postgresql'] : undefined,
  });
  await once(secured, 'secureConnect');
  return secured;
}

/** What is wrong with the TLS of the database, in words that end a sentence, and what an operator can do. */
export function describeTlsFailure(error: unknown): { problem: string; hint: string } | undefined {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const { code = '' } = e as NodeJS.ErrnoException;
    if (e.message === NO_TLS)
      return {
        problem: 'the database offers no TLS',
        hint: 'Set `ssl = on` at the server, or correct sslmode.',
      };
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
      return {
        problem: 'the certificate of the database is for another name',
        hint: 'Use a name that it has, or sslmode=verify-ca.',
      };
    if (code === 'CERT_HAS_EXPIRED')
      return {
        problem: 'the certificate of the database has expired',
        hint: 'Renew it at the server.',
      };
    if (/^ERR_SSL_|^EPROTO$/.test(code))
      return {
        problem: 'no TLS could be agreed on with the database',
        hint: 'The logs of both say why.',
      };
    // OpenSSL's names of what X509_verify_cert_error_string() tells, as Node passes them on.
    if (/CERT|SIGNATURE|CRL|^INVALID_/.test(code))
      return {
        problem: `the certificate of the database is not trusted (${e.message})`,
        hint: "If an authority of your own signed it, name a file with that authority's certificate as sslrootcert=FILE in the URL of the database, or in NODE_EXTRA_CA_CERTS.",
      };
  }
  return undefined;
}

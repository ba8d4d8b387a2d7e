import * as http from 'node:http';
import * as tls from 'node:tls';
import { speaksNoTls } from '../clients/typescript/src/http.ts';
import { findTlsFault } from '../shared/process/tls-faults.ts';
import { CommandError } from './command-error.ts';

/** What Node 20 has not yet. */
interface Newer {
  setGlobalProxyFromEnv?: (environment: NodeJS.ProcessEnv) => unknown;
  getCACertificates?: (kind: 'default' | 'system') => string[];
  setDefaultCACertificates?: (certificates: string[]) => void;
}

const { setGlobalProxyFromEnv } = http as Newer;
const { getCACertificates, setDefaultCACertificates } = tls as Newer;

let isSettled = false;

/**
 * Reaches a service as curl does: through the proxy that HTTPS_PROXY or HTTP_PROXY names, but for NO_PROXY, and with the
 * authorities that this machine trusts, or SSL_CERT_FILE names.
 */
export function useNetworkOf(environment: NodeJS.ProcessEnv, url: string): void {
  if (isSettled) return;
  isSettled = true;
  // It takes a tenth of a second.
  if (url.startsWith('https:') && getCACertificates && setDefaultCACertificates) {
    const all = [...getCACertificates('default'), ...getCACertificates('system')];
    setDefaultCACertificates([...new Set(all)]);
  }
  const named = nameProxy(environment);
  if (named === undefined || !setGlobalProxyFromEnv) return;
  try {
    setGlobalProxyFromEnv(environment);
  } catch (cause) {
    const hint = 'Give it as http://proxy.example.org:3128, or unset it.';
    throw new CommandError(`${named} names no proxy.`, { hint, cause });
  }
}

/** What is to be said of a service that does not answer. */
export function adviseOnNetwork(cause: unknown, environment = process.env): string {
  const fault = findTlsFault(cause);
  if (fault?.isUntrusted)
    return setDefaultCACertificates
      ? "If an authority of your own signed its certificate, set SSL_CERT_FILE to a file with that authority's."
      : "If an authority of your own signed its certificate, set NODE_EXTRA_CA_CERTS to a file with that authority's.";
  if (speaksNoTls(cause)) return 'Is it http:// instead of https://?';
  if (fault) return `${fault.remedy}.`;
  const named = nameProxy(environment);
  if (named === undefined) return 'Is the address right, and the service up?';
  return setGlobalProxyFromEnv
    ? `Is the address right, the service up, and the proxy that ${named} names? NO_PROXY has those to reach without it.`
    : `Is the address right, and the service up? This version of Node does not heed ${named}; 24.14 does.`;
}

/** The variable that names a proxy. */
const nameProxy = (environment: NodeJS.ProcessEnv): string | undefined =>
  ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'].find(name => environment[name]);

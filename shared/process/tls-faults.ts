/** Why TLS with a server fails, and what an operator can do about it; each without a full stop. */
interface TlsFault {
  /** Whether the server's certificate is refused because nobody vouches for it. */
  isUntrusted: boolean;
  /** Begins with a small letter, and names no address. */
  reason: string;
  remedy: string;
}

const UNTRUSTED = {
  codes: [
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'CERT_SIGNATURE_FAILURE',
    'CERT_UNTRUSTED',
    'CERT_REJECTED',
  ],
  reason: 'its certificate is not trusted',
  remedy:
    'Set NODE_EXTRA_CA_CERTS in the environment to a file with the certificate of its authority',
};
const KINDS = [
  UNTRUSTED,
  {
    codes: ['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'],
    reason: 'its certificate is not valid at this time',
    remedy: 'Renew it, or set the clock of this machine',
  },
  {
    codes: ['ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH'],
    reason: 'its certificate is for another name',
    remedy: 'Call the server by a name in its certificate',
  },
  {
    codes: ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'],
    reason: 'it speaks no TLS',
    remedy: 'Give its URL as http:// or redis://, without TLS',
  },
];
/** Node names a certificate's fault as OpenSSL does (X509_V_ERR_…), and a connection's by ERR_SSL_, ERR_TLS_ or EPROTO. */
const OTHERS =
  /^(EPROTO$|ERR_SSL_|ERR_TLS_|CERT_|CRL_|UNABLE_TO_|ERROR_IN_C|INVALID_(CA|PURPOSE)$|PATH_LENGTH_EXCEEDED$)/;
const OTHER = { reason: 'TLS with it fails', remedy: 'See its settings of TLS' };

/** What Node's error, or one of its causes, says of TLS; undefined where it is another one. */
export function findTlsFault(error: unknown): TlsFault | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  const kind =
    KINDS.find(({ codes }) => codes.includes(code)) ?? (OTHERS.test(code) ? OTHER : undefined);
  if (!kind) return findTlsFault(error.cause);
  const { reason, remedy } = kind;
  return { isUntrusted: kind === UNTRUSTED, reason: `${reason} (${code})`, remedy };
}

/** Node gives a failed write the code of the system call alone. */
function codeOf(error: Error): string {
  const code = String((error as NodeJS.ErrnoException).code ?? '');
  return code === 'EPROTO' && error.message.includes('wrong version number')
    ? 'ERR_SSL_WRONG_VERSION_NUMBER'
    : code;
}

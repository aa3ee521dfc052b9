import { printable } from '../text/printable.ts';
import type { FailureKind } from '../transcript/records.ts';

/** The phase an exchange has reached. */
export type ExchangePhase = 'resolve' | 'connect' | 'tls' | 'wait' | 'answer';

export interface ExchangePlace {
  host: string;
  /** `host:port`. */
  address: string;
  isTls: boolean;
}

interface Progress {
  bodyBytes: number;
  maxHeaderBytes: number;
}

/** Fields that Node.js's sockets, TLS and HTTP parser add to an error. */
type WireError = Error & {
  code?: string;
  syscall?: string;
  reason?: string;
  cert?: { subjectaltname?: string };
  rawPacket?: Buffer;
};

/** Translates a Node.js error to a kind of failure, and describes it. */
export function toHttpFailure(
  error: WireError,
  phase: ExchangePhase,
  place: ExchangePlace,
  progress: Progress,
): { failure: FailureKind; message: string } {
  const code = error.code ?? '';
  if (phase === 'resolve')
    return { failure: 'dns', message: `the name ${place.host} does not resolve (${code})` };
  if (phase === 'connect') return { failure: 'connect', message: connectMessage(error, place.address) };
  if (phase === 'tls') return { failure: 'tls', message: tlsMessage(error, place) };
  // The request was sent and may have taken effect.
  if (/^ERR_(SSL|TLS)_/.test(code)) return { failure: 'reset', message: brokenTlsMessage(error, place) };
  if (code === 'HPE_HEADER_OVERFLOW') {
    const message = `the headers of the answer are larger than ${progress.maxHeaderBytes} bytes`;
    return { failure: 'too_large', message };
  }
  if (code.startsWith('HPE_')) return { failure: 'not_http', message: parseMessage(error, place) };
  return { failure: 'reset', message: resetMessage(error, phase, place.address, progress.bodyBytes) };
}

function connectMessage(error: WireError, address: string): string {
  switch (error.code) {
    case 'ECONNREFUSED':
      return `connection refused by ${address}`;
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `no route to ${address}`;
    case 'ETIMEDOUT':
      return `${address} did not answer to TCP`;
    default:
      return `no TCP connection to ${address}: ${error.message || error.code}`;
  }
}

const certificateFaults: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has expired',
  CERT_NOT_YET_VALID: 'is not valid yet',
  CERT_REVOKED: 'has been revoked',
  CERT_UNTRUSTED: 'is not trusted',
  CERT_REJECTED: 'is rejected by the authority that signed it',
  CERT_SIGNATURE_FAILURE: 'has a signature that does not verify',
  CERT_CHAIN_TOO_LONG: 'has too long a chain of issuers',
  INVALID_CA: 'is signed by a certificate that may sign none',
  INVALID_PURPOSE: 'is not one for a server',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is self-signed, so no trusted authority vouches for it',
  SELF_SIGNED_CERT_IN_CHAIN: 'comes from an authority that is not trusted (its root is self-signed)',
  UNABLE_TO_GET_ISSUER_CERT: 'has an issuer that is unknown (is an intermediate certificate not sent?)',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'has an issuer that is unknown (is an intermediate certificate not sent?)',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'has an issuer that is unknown (is an intermediate certificate not sent?)',
};

const protocolFaults: readonly (readonly [RegExp, string])[] = [
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL/,
    'does not speak TLS, perhaps plain HTTP (wrong version number)',
  ],
  [/UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION/, 'speaks no version of TLS from 1.2 on'],
  [/HANDSHAKE_FAILURE|NO_SHARED_CIPHER/, 'refused the TLS handshake: no common cipher'],
  [/UNRECOGNIZED_NAME/, 'has no certificate for this name'],
  [/CERTIFICATE_REQUIRED|BAD_CERTIFICATE/, 'asks for a certificate of the client'],
  [/DH_KEY_TOO_SMALL|EE_KEY_TOO_SMALL|CA_KEY_TOO_SMALL|CA_MD_TOO_WEAK/, 'uses a key that is too weak'],
];

function tlsMessage(error: WireError, { host, address }: ExchangePlace): string {
  const code = error.code ?? '';
  const fault = certificateFaults[code];
  if (fault !== undefined) return `the TLS certificate of ${address} ${fault}`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = error.cert?.subjectaltname;
    const detail = names === undefined ? 'it names no host' : `it is for ${printable(names, 300)}`;
    return `the TLS certificate of ${address} is not for ${host}: ${detail}`;
  }
  // OpenSSL's reason is in the code or, with EPROTO, in the message.
  const reason = /SSL routines:[^:]*:([^:]+)/.exec(error.message)?.[1] ?? error.message;
  const reasons = `${code} ${reason.toUpperCase().replaceAll(' ', '_')}`;
  const [, protocolFault] = protocolFaults.find(([pattern]) => pattern.test(reasons)) ?? [];
  if (protocolFault !== undefined) return `${address} ${protocolFault}`;
  if (code === 'ECONNRESET' || code === '')
    return `${address} closed the connection during the TLS handshake`;
  return `no TLS connection to ${address}: ${printable(reason, 300)} (${code})`;
}

/** An error after the handshake. A server that requires a client certificate reports it only then. */
function brokenTlsMessage(error: WireError, place: ExchangePlace): string {
  if (/CERTIFICATE/.test(error.code ?? '')) return tlsMessage(error, place);
  return `the TLS connection to ${place.address} broke after the request was sent (${error.code})`;
}

function parseMessage(error: WireError, { address, isTls }: ExchangePlace): string {
  const packet = error.rawPacket ?? Buffer.alloc(0);
  // A TLS alert, the answer of a server that expected a TLS handshake.
  if (!isTls && packet[0] === 0x15 && packet[1] === 0x03)
    return `${address} speaks TLS: its address begins with https`;
  const excerpt = packet.length === 0 ? '' : `; it sent "${printable(packet.toString('latin1'), 60)}"`;
  return `what ${address} answered is not HTTP: ${error.reason ?? error.message}${excerpt}`;
}

function resetMessage(error: WireError, phase: ExchangePhase, address: string, bodyBytes: number): string {
  const isReset = error.syscall !== undefined && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '');
  const what = `${address} ${isReset ? 'reset' : 'closed'} the connection`;
  if (phase === 'wait') return `${what} without an answer`;
  return `${what} in the middle of its answer, after ${bodyBytes} bytes of the body`;
}

import { z } from 'zod';
import type { TlsFault } from '../fault.ts';

const none = z.object({});
const HTTPS = 'O: the endpoints are reachable over HTTPS.';

function tlsFault(row: Pick<TlsFault, 'does' | 'strikes' | 'certificate' | 'code'>): TlsFault<typeof none> {
  return { layer: 'tls', on: [], params: none, ...row };
}

export const tlsFaults = {
  'certificate-expired': tlsFault({
    does: 'The certificate expired a day ago.',
    strikes: HTTPS,
    certificate: 'expired',
    code: 'CERT_HAS_EXPIRED',
  }),
  'certificate-wrong-name': tlsFault({
    does: 'The certificate is for another name.',
    strikes: HTTPS,
    certificate: 'wrong-name',
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  }),
  'handshake-reset': tlsFault({
    does: 'The connection is reset after the first message of the handshake.',
    strikes: 'M: an unreachable provider ends no deployment.',
    code: 'ECONNRESET',
  }),
} as const satisfies Record<string, TlsFault>;

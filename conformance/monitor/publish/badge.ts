import { badge } from '../../report/badge.ts';
import { type Certificate, certificateDigest, type Status } from '../certificate/certificate.ts';

const COLOURS: Readonly<Record<Status, string>> = {
  certified: '#2e7d32',
  revoked: '#c62828',
  'not enough': '#b26a00',
};

const WORDS: Readonly<Record<Status, string>> = {
  certified: 'certified',
  revoked: 'revoked',
  'not enough': 'not enough seen',
};

/** The status as an SVG image, with the day and the beginning of the certificate's digest. */
export function toBadge(certificate: Certificate): string {
  const { status, issued_at, contract_version } = certificate;
  const digest = certificateDigest(certificate).slice(0, 12);
  return badge(contract_version, `${WORDS[status]}, ${issued_at.slice(0, 10)}, ${digest}`, COLOURS[status]);
}

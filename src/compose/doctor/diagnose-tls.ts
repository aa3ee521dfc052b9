import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';
import { counted } from '../../contract/counted.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { broken, type Diagnosis, ok, warning } from '../../ports/diagnosis.ts';
import { Fatal } from '../../ports/errors.ts';
import { ENDING_SOON_MS, toTimeLeft } from '../../runtime/certificates.ts';
import { CHECK_EVERY_MS, readTls, type TlsFlag } from '../server/tls.ts';

const BEGIN = '-----BEGIN CERTIFICATE-----';

/** Checks whether clients can trust a listener's certificate, and for how long. Reports nothing without a certificate. */
export function* diagnoseTls(
  { tls, host }: Pick<Config['server'], 'tls' | 'host'>,
  now: number,
  flag?: TlsFlag,
): Generator<Diagnosis> {
  if (tls === undefined) return;
  const subject = 'TLS certificate';
  let pem: string;
  try {
    pem = readTls(tls, flag).cert.toString();
  } catch (error) {
    if (!(error instanceof Fatal)) throw error;
    yield broken(
      subject,
      error.message,
      'Correct these files. A running server keeps its current certificate.',
    );
    return;
  }
  yield ok('TLS key', 'it belongs to the certificate');
  const certificate = new X509Certificate(pem);
  yield toValidity(certificate, now);
  yield toNames(certificate, host);
  const isSelfSigned = certificate.checkIssued(certificate);
  if (isSelfSigned)
    yield warning(
      subject,
      'it is self-signed: clients refuse it unless they are configured to trust it',
      ISSUED,
    );
  else if (pem.indexOf(BEGIN) === pem.lastIndexOf(BEGIN))
    yield warning(
      subject,
      'the file has no intermediate certificate: clients that do not know its issuer refuse it',
      'Put the whole chain into the file, the certificate of the server first.',
    );
}

const ISSUED = 'Use a certificate of an authority that your clients trust.';

function toValidity({ validFrom, validTo }: X509Certificate, now: number): Diagnosis {
  const subject = 'TLS certificate';
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  const renew = `Renew it; a running server uses the new files within ${CHECK_EVERY_MS / 1000} seconds.`;
  if (from > now)
    return broken(subject, `it is valid only from ${validFrom}`, 'Set the clock of this machine, or wait.');
  if (to <= now) return broken(subject, `it ended on ${validTo}: every client refuses it`, renew);
  return to - now < ENDING_SOON_MS
    ? warning(subject, `it ends in ${toTimeLeft(to - now)}, on ${validTo}`, renew)
    : ok(subject, `it is valid for ${counted(Math.floor((to - now) / DAY_MS), 'more day')}`);
}

/** Clients check only the alternative names. */
function toNames(certificate: X509Certificate, host: string): Diagnosis {
  const { subjectAltName: names } = certificate;
  const subject = 'TLS names';
  if (names === undefined)
    return broken(
      subject,
      'it has no subjectAltName: every client refuses it',
      'Issue it with the name of the API.',
    );
  const isName = isIP(host) === 0 && host !== 'localhost';
  return isName && certificate.checkHost(host) === undefined
    ? warning(
        subject,
        `it is for ${names}, and server.host is ${host}`,
        'Check that clients use one of these names.',
      )
    : ok(subject, `it is for ${names}`);
}

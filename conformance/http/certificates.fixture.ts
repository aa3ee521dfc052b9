import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const hasOpenSsl = spawnSync('openssl', ['version']).error === undefined;
if (!hasOpenSsl) process.stderr.write('No openssl here: the tests that need a certificate are left out.\n');

/** PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

export interface CertificateOptions {
  /** As openssl writes subject alternative names. */
  names?: string;
  /** Negative: it is expired. */
  days?: number;
  /** Absent: self-signed. */
  issuer?: Certificate;
  isAuthority?: boolean;
}

/** A certificate for `localhost` and 127.0.0.1, made by openssl. */
export function makeCertificate(options: CertificateOptions = {}): Certificate {
  const { names = 'DNS:localhost,IP:127.0.0.1', days = 2, issuer, isAuthority = false } = options;
  const directory = mkdtempSync(join(tmpdir(), 'berth-conformance-tls-'));
  const path = (name: string): string => join(directory, name);
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'pipe' });
  try {
    writeFileSync(
      path('extensions'),
      `basicConstraints=critical,CA:${isAuthority ? 'TRUE' : 'FALSE'}\nsubjectAltName=${names}\n`,
    );
    openssl(
      'req',
      '-new',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      `/CN=${isAuthority ? 'authority' : 'localhost'}`,
      '-out',
      path('request'),
      '-keyout',
      path('key'),
    );
    const signedBy =
      issuer === undefined ? ['-signkey', path('key')] : ['-CA', path('ca.crt'), '-CAkey', path('ca.key')];
    if (issuer !== undefined) {
      writeFileSync(path('ca.crt'), issuer.cert);
      writeFileSync(path('ca.key'), issuer.key);
    }
    openssl(
      'x509',
      '-req',
      '-in',
      path('request'),
      '-out',
      path('cert'),
      '-days',
      String(days),
      '-set_serial',
      String(Date.now()),
      '-extfile',
      path('extensions'),
      ...signedBy,
    );
    return { cert: readFileSync(path('cert'), 'utf8'), key: readFileSync(path('key'), 'utf8') };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { certificateOf } from '../../../conformance/http/certificates.fixture.ts';
import { loadConfig } from '../../config/load.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { diagnoseTls } from './diagnose-tls.ts';

const FROM = Date.UTC(2026, 0, 1);
const UNTIL = Date.UTC(2126, 0, 1);

describe('the doctor, of a TLS certificate', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-tls-doctor-'));
    for (const name of ['self-signed', 'localhost', 'nameless'] as const)
      writeFileSync(join(folder, `${name}.crt`), certificateOf(name).cert);
    writeFileSync(join(folder, 'server.key'), certificateOf('localhost').key);
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileSync(join(folder, 'other.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const examine = (now: number, cert = 'self-signed', key = 'server', host = '0.0.0.0') => {
    const file = join(folder, 'berth.yaml');
    writeFileSync(file, `server: { host: ${host}, tls: { cert: ${cert}.crt, key: ${key}.key } }\n`);
    const { config } = loadConfig({ file, flags: {}, env: {} });
    return [...diagnoseTls(config.server, now)];
  };
  const said = (...of: Parameters<typeof examine>) =>
    examine(...of).map(({ subject, verdict, finding }) => `${subject} ${verdict}: ${finding}`);

  it('reports its validity, its names and an unknown issuer [doctor-tls]', () => {
    for (const [cert, issuer] of [
      ['self-signed', 'it is self-signed'],
      ['localhost', 'the file has no intermediate certificate'],
    ])
      expect(said(UNTIL - 29 * DAY_MS, cert)).toEqual([
        'TLS key ok: it belongs to the certificate',
        'TLS certificate ok: it is valid for 29 more days',
        'TLS names ok: it is for DNS:localhost, IP Address:127.0.0.1',
        expect.stringContaining(`TLS certificate warning: ${issuer}`),
      ]);
  });

  it('says how soon a server uses a renewed one', () => {
    expect(examine(UNTIL - 10 * DAY_MS)).toContainEqual(
      expect.objectContaining({ remedy: expect.stringMatching(/within 30 seconds\.$/) }),
    );
  });

  it.each<[string, Parameters<typeof examine>, RegExp]>([
    ['ends soon', [UNTIL - 10 * DAY_MS], /^TLS certificate warning: it ends in 10 days/],
    ['has ended', [UNTIL], /^TLS certificate broken: it ended on/],
    ['is not valid yet', [FROM - 1], /^TLS certificate broken: it is valid only from/],
    ['has no names', [FROM, 'nameless'], /^TLS names broken: it has no subjectAltName/],
    [
      'is for another name',
      [FROM, 'localhost', 'server', 'other.example'],
      /^TLS names warning: it is for DNS/,
    ],
    [
      'has another key',
      [FROM, 'localhost', 'other'],
      /^TLS certificate broken: .*not a TLS certificate chain and its key/,
    ],
  ])('reports a certificate that %s', (_what, of, expected) => {
    expect(said(...of)).toContainEqual(expect.stringMatching(expected));
  });
});

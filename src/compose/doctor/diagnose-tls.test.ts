import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../config/load.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { diagnoseTls } from './diagnose-tls.ts';

const hasOpenSsl = spawnSync('openssl', ['version']).error === undefined;

describe.skipIf(!hasOpenSsl)('the doctor, of a TLS certificate', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-tls-doctor-'));
    for (const [name, more] of [
      ['named', ['-addext', 'subjectAltName=DNS:api.example,IP:127.0.0.1']],
      ['nameless', []],
    ] as const)
      spawnSync('openssl', [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'],
        ...['-subj', '/CN=api.example', ...more],
        ...['-out', join(folder, `${name}.crt`), '-keyout', join(folder, `${name}.key`)],
      ]);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const examine = (afterDays: number, cert = 'named', key = cert, host = '0.0.0.0') => {
    const file = join(folder, 'berth.yaml');
    writeFileSync(file, `server: { host: ${host}, tls: { cert: ${cert}.crt, key: ${key}.key } }\n`);
    const { config } = loadConfig({ file, flags: {}, env: {} });
    return [...diagnoseTls(config, Date.now() + afterDays * DAY_MS)];
  };
  const said = (...of: Parameters<typeof examine>) =>
    examine(...of).map(({ subject, verdict, finding }) => `${subject} ${verdict}: ${finding}`);

  it('reports its validity, its names and an unknown issuer [doctor-tls]', () => {
    expect(said(1)).toEqual([
      'TLS key ok: it belongs to the certificate',
      expect.stringMatching(/^TLS certificate ok: it is valid for 2[89] more days$/),
      'TLS names ok: it is for DNS:api.example, IP Address:127.0.0.1',
      expect.stringContaining('TLS certificate warning: it is self-signed'),
    ]);
  });

  it('says how soon a server uses a renewed one', () => {
    expect(examine(20)).toContainEqual(
      expect.objectContaining({ remedy: expect.stringMatching(/within 30 seconds\.$/) }),
    );
  });

  it.each<[string, Parameters<typeof examine>, RegExp]>([
    ['ends soon', [20], /^TLS certificate warning: it ends in 9 days/],
    ['has ended', [31], /^TLS certificate broken: it ended on/],
    ['is not valid yet', [-2], /^TLS certificate broken: it is valid only from/],
    ['has no names', [1, 'nameless'], /^TLS names broken: it has no subjectAltName/],
    [
      'is for another name',
      [1, 'named', 'named', 'other.example'] as const,
      /^TLS names warning: it is for DNS/,
    ],
    [
      'has another key',
      [1, 'named', 'nameless'] as const,
      /^TLS certificate broken: .*not a TLS certificate chain and its key/,
    ],
  ])('reports a certificate that %s', (_what, of, expected) => {
    expect(said(...of)).toContainEqual(expect.stringMatching(expected));
  });
});

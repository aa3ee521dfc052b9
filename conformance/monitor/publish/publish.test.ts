import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readPublicKey, signed, verifySigned } from '../../certificate/sign.ts';
import { type Certificate, certificateDigest, certificateOf } from '../certificate/certificate.ts';
import { parseCertificate } from '../certificate/read.ts';
import type { ProviderConfig } from '../config.ts';
import { configOf } from '../month.fixture.ts';
import { fault, probeAt } from '../probe.fixture.ts';
import type { StoredProbe } from '../records.ts';
import { MS_PER_DAY } from '../spending.ts';
import { filesOf, writeFiles } from './files.ts';
import { toMetrics } from './metrics.ts';
import { serve } from './server.ts';

const NOW = Date.UTC(2026, 1, 1, 12);
const KIND = 'berth-conformance-monitor';

const provider: ProviderConfig = {
  name: 'north',
  base_url: 'https://north.test/v1',
  api_key_env: 'NORTH',
  budget_usd_per_day: 1,
  allow_private: false,
  accepts_other_key: false,
};

function certificateFor(probes: readonly StoredProbe[], now = NOW): Certificate {
  return certificateOf(configOf(), provider, provider.base_url, probes, now);
}

/** Ten days of probes in which nothing was wrong. */
const good = Array.from({ length: 60 }, (_, index) =>
  probeAt(NOW - 10 * MS_PER_DAY + index * 4 * 3_600_000, {}, index % 6 === 0 ? 'machine' : 'read'),
);
const hostile = {
  ...fault('CFG-LIST-001'),
  actual: '<script>alert(1)</script>"\u202e',
  request: "'><img src=x>",
};
const bad = [...good, probeAt(NOW - 2, { failed: [hostile] }), probeAt(NOW - 1, { failed: [hostile] })];

const state = {
  left: new Map([['north', 2]]),
  spentToday: new Map([['north', 0.25]]),
  lastProbeAt: new Map([['north', NOW]]),
  unsentAlerts: 0,
};

describe('a certificate', () => {
  it('is given after enough days, reads and machines', () => {
    expect(certificateFor(good)).toMatchObject({ status: 'certified', because: [] });
    expect(certificateFor(good.slice(-10), good.at(-1)?.startedAt).because.join()).toMatch(
      /of 7 days.*of 20 reading.*of 5 machines/,
    );
    expect(certificateFor([])).toMatchObject({ status: 'not enough', latency_ms: null });
  });

  it('is withheld once the last probe is older than ten mean gaps', () => {
    const soon = certificateFor(good, NOW + MS_PER_DAY / 2);
    expect(soon.status).toBe('certified');
    expect(certificateFor(good, NOW + 3 * MS_PER_DAY)).toMatchObject({
      status: 'not enough',
      because: ['the last probe was on 2026-02-01'],
    });
  });

  it('is revoked by a rule, and given again once the faults are older than the window', () => {
    expect(certificateFor(bad)).toMatchObject({
      status: 'revoked',
      because: ['* fails in 2 probes within 30 days'],
    });
    const later = good.map((probe) => ({ ...probe, startedAt: probe.startedAt + 35 * MS_PER_DAY }));
    expect(certificateFor([...bad, ...later], NOW + 35 * MS_PER_DAY).status).toBe('certified');
  });

  it('shows the day of a fault, and not its time', () => {
    const text = JSON.stringify({ ...certificateFor(bad), issued_at: '' });
    expect(text).toContain('"day":"2026-02-01"');
    expect(text).not.toMatch(/\d\d:\d\d:\d\d/);
  });

  it('is read as it was written; with another field, or two of one name, it is refused', () => {
    const text = JSON.stringify(certificateFor(bad));
    expect(parseCertificate(text)).toEqual({ certificate: JSON.parse(text) });
    expect(parseCertificate(text.replace('{', '{"note":"all is well",'))).toHaveProperty('problem');
    expect(parseCertificate(text.replace('{', '{"status":"certified",'))).toHaveProperty('problem');
    expect(parseCertificate('[]')).toHaveProperty('problem');
  });

  it('is signed: any change is found, and another key', () => {
    const [key, other] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
    const verify = (certificate: Certificate, { publicKey }: typeof key) =>
      verifySigned(
        KIND,
        certificate,
        readPublicKey(publicKey.export({ type: 'spki', format: 'pem' }).toString()),
      );
    const made = signed(KIND, certificateFor(bad), key.privateKey, {});
    expect(() => verify(made, key)).not.toThrow();
    expect(() => verify(made, other)).toThrow('another key');
    expect(() => verify({ ...made, status: 'certified' }, key)).toThrow('not what was signed');
    expect(() => verify(certificateFor(bad), key)).toThrow('not signed');
    expect(() => verifySigned('berth-conformance-report', made)).toThrow('not what was signed');
    expect(certificateDigest(made)).toBe(certificateDigest(certificateFor(bad)));
  });
});

describe('the published files', () => {
  const files = filesOf([certificateFor(bad)]);
  const textOf = (path: string): string => files.find((file) => file.path === path)?.text ?? '';

  it('are the index, and for each provider a page, a certificate and a badge', () => {
    expect(files.map(({ path }) => path)).toEqual([
      'index.html',
      'providers/north.html',
      'providers/north.json',
      'providers/north.svg',
    ]);
  });

  it('escape what the provider answered', () => {
    for (const path of ['index.html', 'providers/north.html', 'providers/north.svg']) {
      expect(textOf(path)).not.toMatch(/<script|<img|\u202e/);
    }
    expect(textOf('providers/north.html')).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;\\u202e');
    expect(textOf('providers/north.html')).toContain('default-src &#39;none&#39;');
  });

  it('the badge has the status, the day and the digest', () => {
    const digest = certificateDigest(certificateFor(bad)).slice(0, 12);
    expect(textOf('providers/north.svg')).toContain(`revoked, 2026-02-01, ${digest}`);
  });

  it('are written as a whole', () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-published-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    writeFiles(folder, files);
    writeFiles(folder, files);
    expect(readdirSync(join(folder, 'providers')).toSorted()).toEqual([
      'north.html',
      'north.json',
      'north.svg',
    ]);
    expect(readFileSync(join(folder, 'index.html'), 'utf8')).toBe(textOf('index.html'));
  });
});

describe('the server', () => {
  it.each([
    ['/', 200, 'text/html'],
    ['/providers/north.html', 200, 'text/html'],
    ['/providers/north.json', 200, 'application/json'],
    ['/providers/north.svg', 200, 'image/svg+xml'],
    ['/metrics', 200, 'text/plain'],
    ['/healthz', 200, 'text/plain'],
    ['/providers/../../etc/passwd', 404, 'text/plain'],
    ['/providers/south.json', 404, 'text/plain'],
  ])('answers %s with %d', async (path, status, type) => {
    const { port, close } = await serve('127.0.0.1:0', {
      certificates: () => [certificateFor(bad)],
      state: () => state,
    });
    onTestFinished(close);
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toContain(type);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect((await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST' })).status).toBe(405);
  });
});

it('the metrics are in the format of Prometheus', () => {
  const text = toMetrics([certificateFor(bad)], state);
  expect(text).toContain('berth_monitor_revoked{provider="north"} 1\n');
  expect(text).toContain('berth_monitor_resources_left{provider="north"} 2\n');
  expect(text).toContain('berth_monitor_read_seconds{provider="north",quantile="0.99"} 0.02\n');
  for (const line of text.trimEnd().split('\n'))
    expect(line).toMatch(/^(# (HELP|TYPE) berth_monitor_\w+ .+|berth_monitor_\w+(\{[^}]+\})? -?[\d.e+]+)$/);
});

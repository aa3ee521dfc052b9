import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch as undiciFetch } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import type { ConfigFlags } from '../../config/settings.ts';
import { createCertificates } from '../sandbox/certificates.ts';
import { serveMarketplace } from './marketplace.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-marketplace-tls-'));
const files = {
  config: join(folder, 'marketplace.yaml'),
  cert: join(folder, 'tls.crt'),
  key: join(folder, 'tls.key'),
};

beforeAll(() => {
  writeFileSync(
    files.config,
    `database: sqlite:m.db
log_level: silent
providers:
- { id: provider-d, base_url: "http://127.0.0.1:1/v1", api_key_env: KEY_D, allow_private: true }
`,
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

async function serve(flags: ConfigFlags) {
  const env = { KEY_D: 'a-secret-of-the-provider' };
  const config = loadMarketplaceConfig({ file: files.config, flags: { port: '0', ...flags }, env });
  return serveMarketplace({ config, env });
}

describe('M: "All requests use HTTPS"', () => {
  it('holds with a certificate and its key: plain HTTP is refused [https-only]', async () => {
    const { ca, valid } = createCertificates(['127.0.0.1'], Date.now());
    writeFileSync(files.cert, valid.cert);
    writeFileSync(files.key, valid.key);
    const serving = await serve({ tlsCert: files.cert, tlsKey: files.key });
    const dispatcher = new Agent({ connect: { ca } });
    try {
      expect(serving.baseUrl).toMatch(/^https:/);
      const reply = await undiciFetch(`${serving.baseUrl}/api/providers`, { dispatcher });
      expect(await reply.json()).toEqual(['provider-d']);
      const metrics = await (await fetch(`${serving.adminUrl}/metrics`)).text();
      const [, left] =
        /^berth_marketplace_certificate_expires_in_seconds\{use="api",name="api"\} (\S+)$/m.exec(metrics) ??
        [];
      expect(Math.round(Number(left) / 86_400)).toBe(365);
      await expect(fetch(`${serving.baseUrl.replace('https', 'http')}/api/providers`)).rejects.toThrow();
    } finally {
      await dispatcher.close();
      await serving.stop();
    }
  });
});

it('the admin listener speaks TLS with a certificate of its own, whose end is in the metrics [admin-tls-metric]', async () => {
  const { ca, valid } = createCertificates(['127.0.0.1'], Date.now());
  writeFileSync(files.cert, valid.cert);
  writeFileSync(files.key, valid.key);
  const serving = await serve({ adminTlsCert: files.cert, adminTlsKey: files.key });
  const dispatcher = new Agent({ connect: { ca } });
  try {
    expect(serving.baseUrl).toMatch(/^http:/);
    const metrics = await (await undiciFetch(`${serving.adminUrl}/metrics`, { dispatcher })).text();
    expect(metrics).toMatch(/certificate_expires_in_seconds\{use="admin",name="admin"\} \d/);
  } finally {
    await dispatcher.close();
    await serving.stop();
  }
});

it('a certificate without its key is refused', async () => {
  await expect(serve({ tlsCert: files.cert })).rejects.toThrow(/tls/i);
});

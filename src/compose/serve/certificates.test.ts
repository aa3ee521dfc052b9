import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { collectLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { configurationAnswer } from '../../client/answering-server.fixture.ts';
import { createClient } from '../../client/create-client.ts';
import { loadConfig } from '../../config/load.ts';
import { exec } from '../../drivers/exec/driver.ts';
import { infoAnswer, setting } from '../../drivers/exec/program.fixture.ts';
import { incus } from '../../drivers/incus/driver.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { Certificates } from '../../runtime/certificates.ts';
import { createCertificates } from '../sandbox/certificates.ts';
import { serveOrchestrator } from './orchestrator.ts';

const HOUR_MS = 3_600_000;

let clock: VirtualClock;
let collected: ReturnType<typeof collectLog>;
let certificates: Certificates;
beforeEach(() => {
  clock = new VirtualClock();
  collected = collectLog();
  certificates = new Certificates({ clock, log: collected.log });
});

const validTo = (days: number): string => new Date(clock.now() + days * DAY_MS).toISOString();
const logged = () => collected.lines.map(({ level, message }) => `${level} ${message}`);

describe('a certificate that ends', () => {
  it('is logged from 14 days before its end, once a day, as an error in the last three, and when it is renewed', async () => {
    const seen = certificates.of('provider', 'provider-a');
    const reports: string[] = [];
    certificates.start({
      endsSoon: ({ name }, text) => void reports.push(`${name}: ${text}`),
      isRenewed: ({ name }) => void reports.push(`${name} renewed`),
    });
    seen({ validTo: validTo(15.5) });
    await clock.advance(DAY_MS);
    expect(logged()).toEqual([]);
    await clock.advance(DAY_MS);
    seen({ validTo: new Date(certificates.list()[0]?.endsAt ?? 0).toISOString() });
    expect(logged()).toEqual([
      expect.stringMatching(
        /^warn the TLS certificate of the provider provider-a ends in 13 days, on .*Z: renew it$/,
      ),
    ]);
    await clock.advance(14 * DAY_MS);
    expect(logged()).toHaveLength(15);
    expect(logged().filter((line) => line.startsWith('warn'))).toHaveLength(11);
    expect(logged().at(-1)).toMatch(
      /^error the TLS certificate of the provider provider-a ended on .*: connections are refused; renew it$/,
    );
    expect(reports).toHaveLength(15);
    seen({ validTo: validTo(90) });
    expect([logged().at(-1), reports.at(-1)]).toEqual([
      'info the TLS certificate of the provider provider-a was renewed',
      'provider-a renewed',
    ]);
    certificates.stop();
  });

  it.each([
    [26, '1 day'],
    [23.5, '23 hours'],
    [1.5, '1 hour'],
    [0.9, 'less than an hour'],
  ])('ends in whole days, and in whole hours on its last day: %d hours before in %s', (hours, words) => {
    certificates.of('api', 'api')({ validTo: validTo(hours / 24) });
    expect(logged()).toEqual([expect.stringContaining(`ends in ${words}, on `)]);
  });

  it('is logged when it is read at the start, and reported to later listeners', () => {
    certificates.of('api', 'api')({ validTo: validTo(1.5) });
    expect(logged()).toEqual([expect.stringMatching(/^error the API's TLS certificate ends in 1 day, on /)]);
    const reports: string[] = [];
    certificates.start({ endsSoon: (_one, text) => void reports.push(text), isRenewed: () => undefined });
    expect(reports).toHaveLength(1);
    certificates.stop();
  });
});

describe('the certificates of others', () => {
  const usual = tls.getCACertificates('default');
  const NAMES = ['127.0.0.1'];
  // They are valid for 365 days.
  const { ca, valid: soon, expired: over } = createCertificates(NAMES, Date.now() - 355 * DAY_MS);
  const { ca: laterCa, valid: later } = createCertificates(NAMES, Date.now() - 275 * DAY_MS);
  let server: Server;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  beforeAll(async () => {
    tls.setDefaultCACertificates([...usual, ca, laterCa]);
    server = createServer(soon, (request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => {
    tls.setDefaultCACertificates(usual);
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    clock = new VirtualClock(Date.now());
    certificates = new Certificates({ clock, log: collected.log });
    server.setSecureContext(soon);
  });
  const url = () => `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const daysLeft = () =>
    certificates
      .list()
      .map(({ use, name, endsAt }) => `${use} ${name} ${Math.round((endsAt - clock.now()) / DAY_MS)}`);

  it('a provider: read from the connections of its client, also where it was renewed or has ended', async () => {
    answer = (_request, response) => {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ configurations: [configurationAnswer] }));
    };
    const client = createClient({
      baseUrl: `${url()}/v1`,
      credential: { apiKey: 'a-key' },
      allowPrivate: true,
      timeoutMs: 10_000,
      clock,
      certificateSeen: certificates.of('provider', 'provider-a'),
    });
    try {
      await client.listConfigurations();
      expect(daysLeft()).toEqual(['provider provider-a 10']);
      server.setSecureContext(later);
      server.closeAllConnections();
      await client.listConfigurations();
      expect(daysLeft()).toEqual(['provider provider-a 90']);
      server.setSecureContext(over);
      server.closeAllConnections();
      await expect(client.listConfigurations()).rejects.toThrow('certificate has expired');
      expect(daysLeft()).toEqual(['provider provider-a 0']);
      expect(logged()).toEqual([
        expect.stringMatching(/^warn .* provider-a ends in (9|10) days/),
        'info the TLS certificate of the provider provider-a was renewed',
        'error the TLS certificate of the provider provider-a has ended: connections are refused; renew it',
      ]);
    } finally {
      await client.close();
    }
  });

  it('a driver behind HTTPS: its connections are replaced every hour, which shows that it was renewed', async () => {
    answer = async (request, response) => {
      let text = '';
      for await (const chunk of request.setEncoding('utf8')) text += chunk;
      const { id, method } = JSON.parse(text);
      response.setHeader('Content-Type', 'application/json');
      const result = { answer: 'all', machines: [] };
      response.end(JSON.stringify(method === 'info' ? { ...infoAnswer(), id } : { id, result }));
    };
    const options = exec.configSchema.parse({ driver: 'exec', url: url() });
    const driver = await exec.open(options, {
      ...setting({ clock }),
      certificateSeen: (use) => certificates.of(use, 'default'),
    });
    try {
      expect(daysLeft()).toEqual(['driver default 10']);
      await driver.list();
      server.setSecureContext(later);
      await driver.list();
      expect(daysLeft()).toEqual(['driver default 10']);
      await clock.advance(HOUR_MS);
      await driver.list();
      expect(daysLeft()).toEqual(['driver default 90']);
    } finally {
      await driver.close();
    }
  });

  it("the API's own: an alarm and a figure of the orchestrator from its start on", async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-api-tls-'));
    writeFileSync(join(folder, 'tls.crt'), soon.cert);
    writeFileSync(join(folder, 'tls.key'), soon.key);
    const file = join(folder, 'berth.yaml');
    writeFileSync(
      file,
      `database: sqlite:b.db
log_level: silent
server: { tls: { cert: tls.crt, key: tls.key } }
`,
    );
    const { config } = loadConfig({ file, flags: { port: '0' }, env: {} });
    const serving = await serveOrchestrator({ config, env: {} });
    try {
      const metrics = await (await fetch(`${serving.adminUrl}/metrics`)).text();
      expect(metrics).toMatch(/^berth_certificate_expires_in_seconds\{use="api",name="api"\} 86\d{4}/m);
      expect(metrics).toContain('berth_alarms{kind="certificate_ending"} 1\n');
    } finally {
      await serving.stop();
      rmSync(folder, { recursive: true });
    }
  });

  it('Incus: the one that is pinned, and the one that Berth shows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-incus-tls-'));
    const put = (name: string, text: Buffer): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const options = incus.configSchema.parse({
      driver: 'incus',
      address: [url()],
      client_certificate: put('client.crt', soon.cert),
      client_key: put('client.key', soon.key),
      server_certificate: put('server.crt', later.cert),
    });
    try {
      const driver = await incus.open(options, {
        ...setting({ clock }),
        certificateSeen: (use) => certificates.of(use, 'cloud'),
      });
      await driver.close();
      expect(daysLeft()).toEqual(['incus_server cloud 90', 'incus_client cloud 10']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

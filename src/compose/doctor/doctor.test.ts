import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { collectLog } from '../../../test/support/doubles/log.ts';
import { account, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { loadConfig } from '../../config/load.ts';
import { createSeededRandom } from '../../drivers/kit/seeded-random.ts';
import { takeStateLock } from '../../drivers/simulator/platform/state-file.ts';
import { ensureInstallation } from '../../orchestrator/reconciliation/installation.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Diagnosis } from '../../ports/diagnosis.ts';
import { systemClock } from '../../runtime/system.ts';
import { openSqliteStore } from '../../store/sqlite/store.ts';
import { diagnoseDatabase } from './diagnose-database.ts';
import { diagnose } from './doctor.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-doctor-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Returns the doctor's findings for a berth.yaml whose database is in a new folder. */
async function examine(
  yaml: string,
  clock: Pick<Clock, 'now'> & Partial<Clock> = systemClock,
): Promise<Diagnosis[]> {
  const file = join(folder, 'berth.yaml');
  writeFileSync(file, `database: sqlite:${join(folder, 'berth.db')}\n${yaml}`);
  const { config } = loadConfig({ file, flags: {}, env: {} });
  const ports = {
    env: {},
    clock: {
      ...systemClock,
      ...(clock.setTimer && { setTimer: clock.setTimer.bind(clock) }),
      now: () => clock.now(),
    },
    log: collectLog().log,
  };
  const findings: Diagnosis[] = [];
  for await (const finding of diagnose(config, ports)) findings.push(finding);
  return findings;
}

const subjects = (findings: Diagnosis[], verdict: Diagnosis['verdict']) =>
  findings.filter((finding) => finding.verdict === verdict).map(({ subject }) => subject);

describe('the doctor', () => {
  it('finds nothing broken where `berth serve` would start, and leaves nothing behind [doctor-sound]', async () => {
    const findings = await examine('platform: { driver: simulator }\n');
    expect(subjects(findings, 'broken')).toEqual([]);
    expect(subjects(findings, 'ok')).toEqual(
      expect.arrayContaining([`database folder ${folder}`, 'clock', 'driver simulator']),
    );
    expect(readdirSync(folder)).toEqual(['berth.yaml']);
    const room = findings.find(({ subject }) => subject === 'database disk');
    expect(room?.finding).toMatch(/^[1-9]\S* (MB|GB) of [1-9]\S* (MB|GB) are free$/);
  });

  it('checks the certificate of the admin listener, too [doctor-admin-tls]', async () => {
    const findings = await examine('server: { admin: { tls: { cert: a.crt, key: a.key } } }\n');
    expect(subjects(findings, 'broken')).toEqual(['TLS certificate of the admin listener']);
  });

  it('reports the problem of each platform and its remedy [doctor-platforms]', async () => {
    const findings = await examine(
      'platforms: { here: { driver: simulator }, there: { driver: simulator, address: "http://127.0.0.1:1" } }\n' +
        `catalog: ${catalogFor('here')}\n`,
    );
    expect(findings.filter(({ verdict }) => verdict === 'broken')).toEqual([
      {
        platform: 'there',
        subject: 'simulator at http://127.0.0.1:1',
        verdict: 'broken',
        finding: expect.stringContaining('no simulator answers'),
        remedy: expect.stringContaining('Start `berth simulator`'),
      },
    ]);
  });

  it('advises to replace the state of the simulator only where it is damaged', async () => {
    mkdirSync(join(folder, 'berth.db.simulator'));
    const findings = await examine('platform: { driver: simulator }\n');
    const finding = findings.find(({ subject }) => subject === 'driver simulator')?.finding;
    expect(finding).toContain('check that its disk has free space');
    expect(finding).not.toContain('delete');
  });

  it('reports why the database folder is not writable, and the remedy', async () => {
    // No user can create a file there, not even root.
    const findings: Diagnosis[] = [];
    for await (const finding of diagnoseDatabase('sqlite:/proc/berth.db', systemClock))
      findings.push(finding);
    expect(findings).toMatchObject([
      { verdict: 'broken', finding: expect.stringMatching(/^nothing can be written there: /) },
    ]);
  });

  it('reports a driver that cannot be opened, and continues with the next', async () => {
    writeFileSync(join(folder, 'berth.db.simulator'), 'no database at all');
    const findings = await examine('platform: { driver: simulator }\n');
    expect(findings.at(-1)).toMatchObject({
      platform: 'default',
      subject: 'driver simulator',
      verdict: 'broken',
      finding: expect.stringContaining('berth.db.simulator'),
    });
  });

  it('finds nothing broken next to a running `berth serve` [doctor-beside-serve]', async () => {
    const store = openSqliteStore(join(folder, 'berth.db'));
    await ensureInstallation(
      { store, random: createSeededRandom('beside') },
      new Map([['default', 'simulator']]),
    );
    await store.close();
    const state = join(folder, 'berth.db.simulator');
    const release = takeStateLock(state);
    try {
      const findings = await examine('platform: { driver: simulator }\n');
      expect(subjects(findings, 'broken')).toEqual([]);
      expect(findings.at(-1)).toMatchObject({
        subject: 'driver simulator',
        finding: expect.stringContaining('Another process runs the simulator'),
      });
    } finally {
      release();
    }
  });

  it('ends within 20 s where a platform hangs, prints a remedy, and checks the others meanwhile [doctor-hangs]', async () => {
    const hanging = createServer(() => undefined);
    hanging.listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    const { port } = hanging.address() as AddressInfo;
    const clock = new VirtualClock();
    const begunAt = clock.now();
    try {
      const there = `{ driver: simulator, address: "http://127.0.0.1:${port}" }`;
      const findings = await clock.advanceUntilSettled(
        examine(
          `platforms: { there: ${there}, here: { driver: simulator } }\ncatalog: ${catalogFor('here')}\n`,
          clock,
        ),
        500,
      );
      expect(clock.now() - begunAt).toBeLessThanOrEqual(20_000);
      expect(findings.filter(({ verdict }) => verdict === 'broken')).toEqual([
        {
          platform: 'there',
          subject: 'driver simulator',
          verdict: 'broken',
          finding: 'no answer within 6 s',
          remedy: expect.stringContaining('run the check again'),
        },
      ]);
      expect(findings.filter(({ platform }) => platform === 'here').length).toBeGreaterThan(1);
    } finally {
      hanging.closeAllConnections();
      hanging.close();
    }
  });

  it('reports platforms that berth.yaml no longer names [doctor-platform-removed]', async () => {
    const store = openSqliteStore(join(folder, 'berth.db'));
    const random = createSeededRandom('doctor');
    const names = ['default', 'east', 'north', 'west'];
    await ensureInstallation({ store, random }, new Map(names.map((name) => [name, 'simulator'])));
    await store.transact(async (tx) => {
      await tx.credentials.insertAccount(account);
      for (const [platform, status] of [
        ['east', 'ONLINE'],
        ['west', 'DESTROYED'],
      ] as const)
        await tx.instances.insert(instance(`inst-${platform}`, { platform, status, createOpenUntil: null }));
    });
    await store.close();
    const findings = await examine('platform: { driver: simulator }\n');
    expect(findings.filter(({ subject }) => subject.startsWith('platform '))).toMatchObject([
      { subject: 'platform east', verdict: 'broken', finding: expect.stringContaining('has 1 instances') },
      { subject: 'platform west', verdict: 'warning', finding: expect.stringContaining('that 1 ended') },
    ]);
  });

  it('continues if the database cannot be read', async () => {
    writeFileSync(join(folder, 'berth.db'), 'no database at all');
    const findings = await examine('platform: { driver: simulator }\n');
    expect(subjects(findings, 'warning')).toContain('platforms of the database');
    expect(subjects(findings, 'ok')).toContain('driver simulator');
  });

  it('reports a clock that was set back behind the last write of the database', async () => {
    const database = join(folder, 'berth.db');
    writeFileSync(database, '');
    const clock = new VirtualClock(Date.now());
    const inAnHour = new Date(clock.now() + 3_600_000);
    utimesSync(database, inAnHour, inAnHour);
    const findings = await examine('', clock);
    expect(subjects(findings, 'broken')).toEqual(['clock']);
  });
});

function catalogFor(platform: string): string {
  const file = join(folder, 'catalog.yaml');
  writeFileSync(
    file,
    'regions: { eu-one: { name: One, country_code: DE, datacenter: one-1 } }\noffers:\n' +
      `  - { id: a, name: A, platform: ${platform}, instance_type: DEDICATED, vcpus: 1, memory_gb: 1, storage_gb: 1, price_per_hour: 1, os_options: [x], supports_cloud_init: true, capacity: { eu-one: 1 } }\n`,
  );
  return file;
}

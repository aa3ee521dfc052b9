import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Offer, Region } from '../orchestrator/catalog/catalog.ts';
import { ConfigError, toLine } from './findings.ts';
import { bundledCatalogFile, loadCatalog, readCatalogFile } from './load.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-catalog-'));
afterAll(() => rmSync(folder, { recursive: true }));

const catalogText = `
regions:
  eu-frankfurt: { name: Frankfurt, datacenter: hal-fra1-b }
  Paris:
    name: Paris
    datacenter: hal-cdg1-a
offers:
  - id: cpu
    name: CPU
    instance_type: DEDICATED
    vcpus: 4
    memory_gb: 16
    storage_gb: 80
    price_per_hour: 0.1
    os_options: [ubuntu-24.04]
    supports_cloud_init: true
    capacity:
      eu-frankfurt: 3
      mars: 3
    extras:
      hal-cdg1-a: yes
  - id: cpu
    nmae: CPU
`;

describe('a catalog', () => {
  it('is refused with the line and the path of each finding', () => {
    const file = join(folder, 'catalog.yaml');
    writeFileSync(file, catalogText);
    expect(() => loadCatalog(file)).toThrowError(ConfigError);
    const read = readCatalogFile(file);
    const missing = [
      'instance_type',
      'vcpus',
      'memory_gb',
      'storage_gb',
      'supports_cloud_init',
      'name',
      'price_per_hour',
      'os_options',
      'capacity',
    ];
    expect('findings' in read && read.findings.map(toLine)).toEqual([
      `${file}:4:3 regions.Paris: expected lower-case words joined by "-", such as "eu-frankfurt"`,
      `${file}:19:7 offers[0].capacity.mars: unknown region; expected one of: eu-frankfurt, Paris`,
      `${file}:21:7 offers[0].extras.hal-cdg1-a: contains the datacenter code "hal-cdg1-a", which clients must never see`,
      ...missing.map((key) => expect.stringContaining(`${file}:22:5 offers[1].${key} is required: `)),
      `${file}:23:5 offers[1].nmae: unknown key; remove it or correct its spelling`,
    ]);
  });
});

describe('Halyard, the bundled catalog', () => {
  const { regions, offers } = loadCatalog(bundledCatalogFile());
  const all = [...offers.values()];
  const units = (offer: Offer) => offer.placements.map((placement) => placement.units);

  it('has four regions and at least a dozen offers of every type', () => {
    expect(regions.size).toBe(4);
    expect(offers.size).toBeGreaterThanOrEqual(12);
    expect(new Set(all.map((offer) => offer.instanceType))).toEqual(
      new Set(['SPOT', 'DEDICATED', 'BARE_METAL', 'CLUSTER']),
    );
  });

  it.each<[string, (offer: Offer) => boolean]>([
    ['sold out', (offer) => units(offer).every((count) => count === 0)],
    ['under maintenance', (offer) => offer.maintenance],
    ['without cloud-init', (offer) => !offer.supportsCloudInit],
    ['held while stopped, and resumable', (offer) => offer.onStop === 'hold' && offer.resumable],
    ['that cannot be resumed', (offer) => !offer.resumable],
    ['that cannot be restarted', (offer) => !offer.restartable],
    ['that costs something while stopped', (offer) => (offer.stoppedPriceMicroUsdPerHour ?? 0) > 0],
    ['with a least reservation', (offer) => (offer.minimumReservationMinutes ?? 0) > 0],
    [
      'that may take an hour',
      (offer) => offer.instanceType === 'BARE_METAL' && offer.onlineWithinMs === 3_600_000,
    ],
    ['of exactly three units in a region', (offer) => units(offer).includes(3)],
    [
      'cheap, with at least a hundred units in a region',
      (offer) => offer.priceMicroUsdPerHour < 100_000 && Math.max(...units(offer)) >= 100,
    ],
    [
      'at a spot price',
      (offer) =>
        offer.instanceType === 'SPOT' && (offer.spotPriceMicroUsdPerHour ?? 0) < offer.priceMicroUsdPerHour,
    ],
    [
      'with InfiniBand',
      (offer) => offer.instanceType === 'CLUSTER' && JSON.stringify(offer.extras).includes('infiniband'),
    ],
    [
      'sold in the drained region',
      (offer) => offer.placements.some(({ region }) => regions.get(region)?.drained),
    ],
  ])('has an offer %s', (_what, has) => {
    expect(all.filter(has).map((offer) => offer.id)).not.toEqual([]);
  });

  it.each<[string, number, (region: Region) => boolean]>([
    ['drained', 1, (region) => region.drained],
    ['with volumes', 3, (region) => region.volumeTypes.length > 0],
    ['with volumes that instances share', 1, (region) => region.volumeTypes.some((type) => type.shareable)],
  ])('has regions %s: at least %i', (_what, least, is) => {
    expect([...regions.values()].filter(is).length).toBeGreaterThanOrEqual(least);
  });
});

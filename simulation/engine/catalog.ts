import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { catalog as ofPlatform } from '../orchestrator/catalog.ts';

export const DATACENTER = 'dc-north-1';
const REGION = 'eu-north';

const [region, cpu, spot] = [
  ofPlatform.regions.get(REGION),
  ofPlatform.offers.get('cpu'),
  ofPlatform.offers.get('spot'),
];
if (region === undefined || cpu === undefined || spot === undefined)
  throw new Error('the catalog of the simulated platform lacks what is sold here');

const sold = (units: number) => ({ placements: [{ region: REGION, units }] });

/** One region of a few hosts, whose volumes are on one host each. */
export const catalog: Catalog = {
  regions: new Map([
    [
      REGION,
      { ...region, volumeTypes: region.volumeTypes.filter(({ name }) => name === 'single'), storageGb: 200 },
    ],
  ]),
  offers: new Map([
    ['cpu', { ...cpu, ...sold(4) }],
    ['held', { ...cpu, id: 'held', name: 'Offer held', onStop: 'hold' as const, ...sold(2) }],
    ['spot', { ...spot, ...sold(2) }],
  ]),
};

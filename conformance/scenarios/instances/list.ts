import { knownRegions, UNKNOWN_REGION } from '../catalog/catalog.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';

/** Lists the account's instances. */
export const list: Scenario = {
  id: 'list',
  level: 'read-only',
  title: 'lists the instances',
  after: ['catalog'],
  buys: [],
  async run(session) {
    await session.get('list/all', '/instances');
    for (const region of knownRegions(session)) await listOf(session, 'list/of-region', region);
  },
};

/** Lists by region while an instance exists that must be in one list and not in the other. */
export const listByRegion: Scenario = {
  id: 'list-by-region',
  level: 'lifecycle',
  title: 'lists the instances of a region',
  after: ['create'],
  buys: [],
  async run(session) {
    const instance = requirePrimary(session, 'list-by-region');
    if (instance === undefined) return;
    const other = knownRegions(session).find((region) => region !== instance.region);
    await listOf(session, 'list-by-region/own', instance.region);
    await listOf(session, 'list-by-region/other', other ?? UNKNOWN_REGION);
  },
};

async function listOf(session: Session, step: string, region: string): Promise<void> {
  await session.get(step, `/instances?region=${encodeURIComponent(region)}`);
}

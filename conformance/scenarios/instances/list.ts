import { readEach } from '../catalog/catalog.ts';
import { otherRegion, pathIn, regionPaths, UNKNOWN_REGION } from '../catalog/regions.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';

/** Lists the account's instances. */
export const list: Scenario = {
  id: 'list',
  level: 'read-only',
  title: 'lists the instances',
  after: ['catalog'],
  buys: [],
  async run(session) {
    await session.get('list/all', '/instances');
    await readEach(session, 'list/of-region', regionPaths('list/of-region', session));
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
    await session.get('list-by-region/own', pathIn('/instances', instance.region));
    const other = otherRegion(session, instance.region);
    await session.get('list-by-region/other', pathIn('/instances', other));
  },
};

/** Lists each region of some instances, and another if there is one: an instance belongs in one of the lists. */
export async function listInRegions(
  session: Session,
  scenario: string,
  instances: readonly Instance[],
): Promise<void> {
  const own = instances.map(({ region }) => region);
  const regions = new Set([...own, ...own.slice(0, 1).map((region) => otherRegion(session, region))]);
  regions.delete(UNKNOWN_REGION);
  for (const region of regions) await session.get(`${scenario}/list-of-region`, pathIn('/instances', region));
}

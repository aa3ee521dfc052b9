import { readEach } from '../catalog/catalog.ts';
import { otherRegion, pathIn, regionPaths } from '../catalog/regions.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';

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

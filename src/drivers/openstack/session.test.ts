import { expect, it } from 'vitest';
import type { Cloud } from './clouds.ts';
import { toSession } from './session.ts';

const endpointsIn = (...regions: string[]) =>
  regions.map((region_id) => ({ interface: 'public', region_id, url: `https://nova.${region_id}/v2.1/` }));
const tokenFor = (...regions: string[]) => ({
  token: {
    expires_at: '2100-01-01T00:00:00Z',
    project: { id: 'p1', name: 'berth' },
    catalog: [{ type: 'compute', endpoints: endpointsIn(...regions) }],
  },
});
const sessionOf = (regions: string[], cloud: Partial<Cloud> = {}) =>
  toSession('t', tokenFor(...regions), { interface: 'public', ...cloud } as Cloud);

it('the only region of a cloud need not be named', () => {
  expect(sessionOf(['one']).urlOf('compute')).toBe('https://nova.one/v2.1');
});

it('of several regions one is named, and its endpoints are used', () => {
  expect(() => sessionOf(['one', 'two'])).toThrow('the cloud has the regions one, two: name one');
  expect(sessionOf(['one', 'two'], { region: 'two' }).urlOf('compute')).toBe('https://nova.two/v2.1');
});

it('a region without the service is said to have none', () => {
  expect(() => sessionOf(['one'], { region: 'elsewhere' }).urlOf('compute')).toThrow(
    'the region elsewhere has no public endpoint of compute',
  );
});

it('a credential of another project than that of the configuration is refused [openstack-project]', () => {
  expect(sessionOf(['one'], { project: 'p1' }).project.id).toBe('p1');
  expect(() => sessionOf(['one'], { project: 'p2' })).toThrow('the project p1, not of platform.project, p2');
});

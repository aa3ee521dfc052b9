import { describe, expect, it } from 'vitest';
import { MEMBER } from '../../../simulation/engine/openstack/memory-cloud.fixture.ts';
import { diagnose } from './diagnose.ts';
import { type Given, openstackInMemory } from './driver.fixture.ts';

async function findings(
  given: Given = {},
  change: (setting: ReturnType<typeof openstackInMemory>) => void = () => undefined,
) {
  const setting = openstackInMemory(given);
  change(setting);
  const found: string[] = [];
  for await (const { verdict, subject, finding } of diagnose(
    setting.options,
    setting.catalog,
    setting.connection as never,
  ))
    found.push(`${verdict} ${subject}: ${finding}`);
  return found;
}

describe('berth doctor of an OpenStack cloud', () => {
  it('finds a sound cloud in order', async () => {
    const found = await findings({ floating: true, options: { project: 'berth' } });
    expect(found.filter((one) => !one.startsWith('ok '))).toEqual([]);
    expect(found.join('\n')).toMatch(
      /credential at .*: It belongs to the project berth \(berth\), in the region RegionOne/,
    );
    expect(found.join('\n')).toMatch(/ok API of compute: It speaks [\d.]+ to [\d.]+, and Berth uses 2.79/);
    expect(found.join('\n')).toMatch(/ok room for h100 in fra: There is room for \d+ more/);
  });

  it.each<[string, Given, (setting: ReturnType<typeof openstackInMemory>) => void, RegExp]>([
    [
      'a credential that is refused',
      {},
      ({ identity }) => identity.setRevoked('berth', true),
      /^broken credential .*Keystone refuses the credential/,
    ],
    [
      'a missing network',
      { options: { network: 'nowhere' } },
      () => undefined,
      /^broken network nowhere: This project sees none/,
    ],
    [
      'a missing flavor',
      {},
      ({ cloud }) => cloud.flavors.clear(),
      /^broken flavor m1.small of h100: This project sees no such flavor/,
    ],
    [
      'a missing image',
      {},
      ({ cloud }) => cloud.images.clear(),
      /^broken image ubuntu-24.04: There is no active image/,
    ],
    [
      'a flavor of another size',
      {},
      ({ cloud }) => {
        cloud.flavors.clear();
        cloud.flavor('m1.small', 1, 2048, 20);
      },
      /^warning flavor .*It has 1 CPUs, and 2 are sold/,
    ],
    [
      'a zone that is not there',
      { options: { datacenters: { fra: { zones: ['az9'] } } } },
      () => undefined,
      /^broken availability zone az9: There is none/,
    ],
    [
      'a quota that is used up',
      {},
      ({ cloud }) => {
        cloud.quota.cores = 1;
      },
      /^warning room for h100 in fra: There is room for 0 more/,
    ],
    [
      'a project that may not ask Placement',
      { as: MEMBER },
      () => undefined,
      /^warning Placement: This project has no access to it/,
    ],
  ])('names %s', async (_what, given, change, expected) => {
    expect(await findings(given, change)).toContainEqual(expect.stringMatching(expected));
  });
});

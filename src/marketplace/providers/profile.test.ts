import { describe, expect, it } from 'vitest';
import type { InstanceType } from '../contract/values.ts';
import { letters, readProvider } from '../volumes/seven-providers.fixture.ts';
import { ruleOf } from './capabilities.ts';
import { isOfAll, type ProviderProfile, providerProfileSchema } from './profile.ts';

const providers = letters.map((letter) => ({ letter, ...readProvider(letter) }));

/** M: Deployments, Lifecycle rules, 2; Volumes: create body, rules 4 to 7; Limits. */
const rules: Record<string, { of: (profile: ProviderProfile) => unknown; is: unknown[] }> = {
  'stopping only on d and e [profile-stop-d-e]': {
    of: (profile) => !isOfAll(profile, 'no_stop'),
    is: [false, false, false, true, true, false, false],
  },
  'stopping on d depending on machine type and region [profile-stop-d-exceptions]': {
    of: ({ id, machines }) => {
      const except = machines.filter((it) => it.no_stop);
      return id === 'provider-d' ? except.some((it) => it.regions) && except.some((it) => it.offers) : null;
    },
    is: [null, null, null, true, null, null, null],
  },
  'restarting on f and g, but not of bare metal [profile-restart-f-g]': {
    of: ({ machines }) =>
      machines.some((it) => it.no_restart && it.instance_types?.includes('BARE_METAL') === true),
    is: [false, false, false, false, false, true, true],
  },
  'the minutes for which some of its machines are reserved': {
    of: ({ machines }) => machines.flatMap((it) => it.minimum_reservation_minutes ?? []),
    is: [[], [], [], [], [60], [60], [120]],
  },
  'volumes of a, c, d, e and f': {
    of: ({ volumes }) => volumes !== null,
    is: [true, false, true, true, true, true, false],
  },
  'the sizes of volumes': {
    of: ({ volumes }) => volumes && [volumes.min_size_gb, volumes.max_size_gb],
    is: [[1, 10000], null, [50, 10000], [1, 51200], [1, 262144], [1, 16000], null],
  },
  'the length of their names [profile-name-length]': {
    of: ({ volumes }) => volumes?.name_max_length,
    is: [60, undefined, 60, 50, 60, 60, undefined],
  },
  'how many are on one instance [profile-volumes-per-instance]': {
    of: ({ volumes }) => volumes?.max_per_instance,
    is: [10, undefined, 1, 10, null, 1, undefined],
  },
  'which are shared': {
    of: ({ volumes }) => volumes?.shareable,
    is: [true, undefined, false, false, true, false, undefined],
  },
  'a cloudId for c only': {
    of: ({ volumes }) => volumes && Object.values(volumes.regions).some(({ clouds }) => clouds),
    is: [false, null, true, false, false, false, null],
  },
  'a deploymentId at create for a, d and e only': {
    of: ({ volumes }) => volumes?.attach_at_create,
    is: [true, undefined, false, true, true, false, undefined],
  },
  'an attach endpoint for a, d and e, which restarts the instances of e [profile-attach-endpoint]': {
    of: ({ volumes }) => volumes && volumes.no_attach === undefined && volumes.attach_restarts_instance,
    is: [false, null, false, false, true, false, null],
  },
  'growing of a and e, renaming of a [profile-grow-rename]': {
    of: ({ volumes }) => volumes && [volumes.grow, volumes.rename],
    is: [...[[true, true], null, [false, false], [false, false]], ...[[true, false], [false, false], null]],
  },
};

it.each(Object.entries(rules))('has %s', (_, { of, is }) => {
  expect(providers.map(({ profile }) => of(profile))).toEqual(is);
});

describe.each(providers)('the files of provider-$letter', ({ letter, profile, file }) => {
  const offers = new Map(file.offers.map((offer) => [offer.id, offer]));
  const { machines, volumes } = profile;

  it('are of the provider that they are named after', () => {
    expect(profile).toMatchObject({ id: `provider-${letter}`, name: `Provider ${letter.toUpperCase()}` });
    expect([...offers.keys()].every((id) => id.startsWith(`${letter}-`))).toBe(true);
  });

  it('name only offers and regions that the catalog has', () => {
    const named = machines.flatMap((it) => it.offers ?? []);
    expect(named.filter((id) => !offers.has(id))).toEqual([]);
    const regions = [...machines.flatMap((it) => it.regions ?? []), ...Object.keys(volumes?.regions ?? {})];
    expect(regions.filter((region) => file.regions[region] === undefined)).toEqual([]);
  });

  it('have a last deploy timeout for all machines, and a CPU offer', () => {
    const { instance_types, regions, offers: of, deploy_timeout_minutes } = machines.at(-1) ?? {};
    expect([instance_types, regions, of, deploy_timeout_minutes]).toEqual([
      ...[undefined, undefined, undefined, expect.any(Number)],
    ]);
    expect(file.offers.some(({ gpu_count = 0 }) => gpu_count === 0)).toBe(true);
  });

  it('give a price for a stopped instance exactly where one can be stopped', () => {
    const isStoppable = (offerId: string, instanceType: InstanceType) =>
      ruleOf(profile, 'no_stop', { offerId, instanceType }, null) === null;
    for (const { id, instance_type: type, stopped_price_per_hour: price, resumable } of file.offers) {
      expect([id, price !== undefined]).toEqual([id, isStoppable(id, type) && resumable]);
    }
  });

  it('agree on volumes: the provider accepts all that the profile allows', () => {
    const types = Object.entries(file.regions).flatMap(([region, it]) =>
      it.volume_types.map((type) => ({ region, ...type })),
    );
    expect(types.length > 0).toBe(volumes !== null);
    for (const { region, name, min_size_gb: min, max_size_gb: max, shareable } of types) {
      const own = volumes?.regions[region];
      expect(shareable).toBe(volumes?.shareable);
      expect([min, max]).toEqual([
        own?.min_size_gb ?? volumes?.min_size_gb,
        own?.max_size_gb ?? volumes?.max_size_gb,
      ]);
      const asked = [volumes?.type, ...(own?.clouds ?? []).map((cloud) => cloud.type)].filter(Boolean);
      if (asked.length > 0) expect(asked).toContain(name);
    }
  });
});

it('refuses a profile with a key that it does not know', () => {
  const [first] = providers;
  expect(providerProfileSchema.safeParse(first?.profile).success).toBe(true);
  expect(providerProfileSchema.safeParse({ ...first?.profile, colour: 'red' }).success).toBe(false);
});

it.each<[string, { machines?: object[]; volumes?: object }]>([
  ['nvlink for all offers', { machines: [{ nvlink: true, deploy_timeout_minutes: 15 }] }],
  ['nvlink in one region', { machines: [{ nvlink: true, offers: ['x'], regions: ['y'] }] }],
  ['a mount command without its path', { volumes: { mount_pseudopath: undefined } }],
  ['a path without its mount command', { volumes: { mount_command: undefined } }],
])('refuses %s', (_, { machines = [], volumes = {} }) => {
  const { profile } = readProvider('a');
  const changed = {
    ...profile,
    machines: [...machines, ...profile.machines],
    volumes: { ...profile.volumes, ...volumes },
  };
  expect(providerProfileSchema.safeParse(changed).success).toBe(false);
});

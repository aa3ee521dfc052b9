import { describe, expect, it } from 'vitest';
import { brokenPromises, disagreements } from './at-rest.ts';
import { auditBills } from './bills.ts';
import { wrongDeeds } from './deeds.ts';
import { endedWorld, HOUR_MS, machine, order, rightWorld, type World } from './rows.fixture.ts';

const GIVEN_UP_AFTER_MS = 60_000;

const findings = ({ rows, truth, orders }: World): string[] => [
  ...disagreements(rows, truth),
  ...brokenPromises(rows, orders, GIVEN_UP_AFTER_MS),
  ...wrongDeeds(truth, rows, orders, GIVEN_UP_AFTER_MS),
];
const billFindings = ({ rows, truth, orders }: World): string[] =>
  auditBills(truth, rows, orders, GIVEN_UP_AFTER_MS).findings;

/** The first of them, to be changed. */
function first<T>(items: readonly T[]): T {
  const [item] = items;
  if (item === undefined) throw new Error('there is none');
  return item;
}

it('finds nothing where everything is right', () => {
  expect(findings(rightWorld())).toEqual([]);
  expect([...findings(endedWorld()), ...billFindings(endedWorld())]).toEqual([]);
});

describe('finds at rest', () => {
  it.each<[string, (world: World) => void, RegExp]>([
    [
      'a machine that no deployment has',
      ({ truth }) => truth.instances.push(machine('i-b')),
      /machine i-b .* belongs to no live deployment/,
    ],
    [
      'a machine that is gone',
      ({ truth }) => truth.instances.pop(),
      /dep-a is running, and its machine is gone/,
    ],
    [
      'a machine in another state',
      ({ truth }) => Object.assign(first(truth.instances), { status: 'STOPPED' }),
      /dep-a is running, and its machine is STOPPED/,
    ],
    [
      'one machine of two deployments',
      ({ rows }) =>
        rows.deployments.push({ ...first(rows.deployments), id: 'dep-b', providerName: 'name-b' }),
      /two deployments have the machine i-a/,
    ],
    [
      'a volume of another size',
      ({ truth }) => Object.assign(first(truth.volumes), { size_gb: 200 }),
      /vol-v has 150 GB, at the provider 200/,
    ],
    [
      'an attachment that only a row has',
      ({ truth }) => Object.assign(first(truth.volumes), { attached_instance_ids: [] }),
      /vol-v is on i-a, at the provider on nothing/,
    ],
    [
      'an attachment on its way',
      ({ rows }) => Object.assign(first(rows.attachments), { state: 'detaching' }),
      /is still detaching/,
    ],
    ['a volume that no row has', ({ rows }) => rows.volumes.pop(), /the volume v-1 .* belongs to no row/],
    [
      'a deployment that was lost',
      ({ rows }) => Object.assign(first(rows.deployments), { status: 'terminated-provider' }),
      /dep-a is terminated-provider, and its provider lost nothing/,
    ],
    [
      'a deployment that ended by itself',
      ({ rows }) => Object.assign(first(rows.deployments), { status: 'terminated' }),
      /dep-a is terminated, and nobody ordered that/,
    ],
    [
      'a terminate that was accepted and forgotten',
      ({ orders }) => orders.push(order('terminate', 'dep-a', 4 * HOUR_MS)),
      /dep-a was terminated and is running/,
    ],
    [
      'a pause that was accepted and is not so',
      ({ orders }) => orders.push(order('pause', 'dep-a', 4 * HOUR_MS)),
      /pause of dep-a was answered 200, and it is running/,
    ],
    [
      'a detach that was accepted and is not so',
      ({ orders }) => orders.push(order('detach', 'vol-v', 4 * HOUR_MS, { deploymentId: 'dep-a' })),
      /detach of vol-v was answered 200 and is not so/,
    ],
    [
      'a create that was accepted and has no row',
      ({ orders }) => orders.push(order('create', 'dep-x', 0, { status: 201 })),
      /dep-x was answered 201 and has no row/,
    ],
  ])('%s', (_name, change, finding) => {
    const world = rightWorld();
    change(world);
    expect(findings(world)).toContainEqual(expect.stringMatching(finding));
  });
});

describe('finds among what the provider did', () => {
  const stop = (at: number) => ({ kind: 'stop', id: 'i-a', at, doneAt: at }) as const;
  it.each<[string, (world: World) => void, RegExp]>([
    [
      'a stop without an order',
      ({ truth }) => truth.deeds.push(stop(4 * HOUR_MS)),
      /no order is left for it/,
    ],
    [
      'a stop that was ordered once and carried out twice',
      ({ truth, orders }) => {
        orders.push(order('pause', 'dep-a', 4 * HOUR_MS));
        truth.deeds.push(stop(4 * HOUR_MS + 10), stop(4 * HOUR_MS + 20));
      },
      /stop of dep-a/,
    ],
    [
      'a stop of which the answer was "nothing changed"',
      ({ truth, orders }) => {
        orders.push(order('pause', 'dep-a', 4 * HOUR_MS, { status: 502 }));
        truth.deeds.push(stop(4 * HOUR_MS + 10));
      },
      /502 \(sent 0\.0 s before/,
    ],
    [
      'a stop that was carried out after it was given up',
      ({ truth, orders }) => {
        orders.push(order('pause', 'dep-a', 4 * HOUR_MS, { status: null, answeredAt: null }));
        truth.deeds.push(stop(4 * HOUR_MS + 70_000));
      },
      /no answer \(sent 70\.0 s before/,
    ],
    [
      'a second machine of one name',
      ({ truth }) => truth.deeds.push({ ...first(truth.deeds), id: 'i-b' }),
      /name-a was made twice/,
    ],
    [
      'a create that was sent twice',
      ({ truth }) => truth.repeatedCreates.push('name-a'),
      /name-a was sent twice/,
    ],
    [
      'a machine that no row has',
      ({ truth }) => truth.deeds.push({ ...first(truth.deeds), id: 'i-b', name: 'name-b' }),
      /no row has the machine i-b/,
    ],
    [
      'a delete of what had not ended',
      ({ truth }) => truth.deeds.push({ kind: 'delete', id: 'i-a', at: 5 * HOUR_MS, doneAt: 5 * HOUR_MS }),
      /machine i-a was deleted at .* had not ended/,
    ],
  ])('%s', (_name, change, finding) => {
    const world = rightWorld();
    change(world);
    expect(findings(world)).toContainEqual(expect.stringMatching(finding));
  });

  it('but not a stop without an answer that was carried out soon after', () => {
    const world = rightWorld();
    world.orders.push(order('pause', 'dep-a', 4 * HOUR_MS, { status: null, answeredAt: null }));
    world.truth.deeds.push(stop(4 * HOUR_MS + 20_000), {
      ...{ kind: 'start', id: 'i-a', at: 4 * HOUR_MS + 30_000, doneAt: 4 * HOUR_MS + 30_000 },
    });
    world.orders.push(order('resume', 'dep-a', 4 * HOUR_MS + 29_990));
    expect(findings(world)).toEqual([]);
  });

  it('but not a stop that a server could read only after it went on', () => {
    const world = rightWorld();
    const unread = { status: null, answeredAt: null, readableAt: 4 * HOUR_MS + 70_000 };
    world.orders.push(order('pause', 'dep-a', 4 * HOUR_MS, unread));
    world.truth.deeds.push(stop(4 * HOUR_MS + 71_000));
    expect(findings(world)).toEqual([]);
  });
});

describe('finds among the bills', () => {
  const deployment = ({ rows }: World) => first(rows.deployments);
  it.each<[string, (world: World) => void, RegExp]>([
    [
      'ten seconds at the rate of the other state',
      (world) =>
        Object.assign(deployment(world), { totalCostMicroUsd: 6_500_000 + Math.round(15_000_000 / 3_600) }),
      /dep-a was billed 6504167 µUSD/,
    ],
    [
      'a machine that was deleted before its end',
      ({ truth }) => Object.assign(truth.deeds.at(-2) ?? {}, { at: 3 * HOUR_MS }),
      /is billed until .*, and its machine was deleted at/,
    ],
    [
      'time before the machine was there',
      (world) => Object.assign(deployment(world), { startedAt: -HOUR_MS }),
      /is billed from -3600000/,
    ],
    [
      'an end at another time than that of the order',
      (world) => {
        const late = (deployment(world).stoppedAt ?? 0) + HOUR_MS;
        for (const deed of world.truth.deeds.slice(-2)) deed.at = late;
        Object.assign(deployment(world), { stoppedAt: late, totalCostMicroUsd: 8_500_000 });
      },
      /dep-a ended at .*, when nobody ordered that/,
    ],
    [
      'a larger volume at the price of the smaller one',
      ({ rows }) => Object.assign(first(rows.volumes), { totalCostMicroUsd: 40_000 }),
      /vol-v was billed 40000 µUSD, by the provider's journal 44\d\d\d to 4500/,
    ],
    [
      'a deployment that never had a machine',
      ({ rows }) =>
        rows.deployments.push({ ...first(rows.deployments), id: 'dep-x', providerName: 'name-x' }),
      /dep-x never had a machine, and was billed/,
    ],
  ])('%s', (_name, change, finding) => {
    const world = endedWorld();
    change(world);
    expect(billFindings(world)).toContainEqual(expect.stringMatching(finding));
  });
});

it.each<[string, number, number]>([
  ['may be billed as running where its order had no clear answer', 504, 0],
  ['is billed as one where its order was answered', 200, 1],
])('a stop that no server saw before the end %s', (_name, status, found) => {
  const world = endedWorld();
  const stoppedAt = (first(world.rows.deployments).stoppedAt ?? 0) - 60_000;
  world.truth.deeds.push({ kind: 'stop', id: 'i-a', at: stoppedAt, doneAt: stoppedAt });
  world.orders.push(order('pause', 'dep-a', stoppedAt - 10, { status }));
  expect(billFindings(world)).toHaveLength(found);
});

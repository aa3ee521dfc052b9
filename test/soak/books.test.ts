import { describe, expect, it } from 'vitest';
import { bundledCatalogFile, loadCatalog } from '../../src/config/load.ts';
import type { SimulatorTruth } from '../../src/drivers/simulator/platform/simulator.ts';
import { type Books, disagreements } from './books.ts';

const catalog = loadCatalog(bundledCatalogFile());
const placement = { offerId: 'h100-sxm-1x', region: 'eu-frankfurt' };
const there = { offerId: 'h100-sxm-1x', datacenter: 'hal-fra1-b' };

interface World {
  books: Books;
  truth: SimulatorTruth;
}

/** One instance that runs with a volume, one that is stopped, one that failed and one that was deleted. */
function inBalance(): World {
  const instance = (id: string, status: string) => {
    const row = { ...placement, holdsStopped: false, error: null };
    return { id, ownerRef: `ref-${id}`, status, ...row };
  };
  return {
    books: {
      instances: [
        ...[instance('a', 'ONLINE'), instance('b', 'STOPPED')],
        ...[instance('c', 'ERROR'), instance('d', 'DESTROYED')],
      ],
      volumes: [
        { id: 'v', ownerRef: 'ref-v', status: 'ATTACHED', isDeleted: false },
        { id: 'w', ownerRef: 'ref-w', status: 'DELETING', isDeleted: true },
      ],
      attachments: [{ volumeId: 'v', instanceId: 'a', state: 'attached' }],
      claims: [{ instanceId: 'a', ...placement }],
      work: [],
    },
    truth: {
      capacity: [{ ...there, units: 3, spot: false }],
      machines: [
        { ref: 'ref-a', ...there, power: 'running', holdsUnit: true, createdAt: 1 },
        { ref: 'ref-b', ...there, power: 'stopped', holdsUnit: false, createdAt: 1 },
      ],
      volumes: [{ ref: 'ref-v', state: 'available', createdAt: 1 }],
      attachments: [{ volume: 'ref-v', machine: 'ref-a', state: 'attached' }],
      units: [
        { at: 1, event: 'taken', ref: 'ref-a', ...there },
        { at: 1, event: 'taken', ref: 'ref-b', ...there },
        { at: 2, event: 'freed', ref: 'ref-b', ...there },
      ],
    },
  };
}

const find = ({ books, truth }: World): string[] => disagreements(books, truth, catalog);

/** The first of them, to be changed. */
function first<T>(items: T[]): T {
  const [item] = items;
  if (item === undefined) throw new Error('there is none');
  return item;
}

it('finds nothing where all books agree', () => {
  expect(find(inBalance())).toEqual([]);
});

describe('finds', () => {
  it.each<[string, (world: World) => void, RegExp]>([
    ['an instance without a machine', ({ truth }) => truth.machines.shift(), /a is ONLINE, its machine gone/],
    [
      'a stopped instance whose machine runs',
      ({ truth }) => Object.assign(truth.machines[1] ?? {}, { power: 'running' }),
      /b is STOPPED, its machine running/,
    ],
    [
      'a machine that a deleted instance left',
      ({ truth }) => truth.machines.push({ ...first(truth.machines), ref: 'ref-d' }),
      /machine ref-d \(running\) belongs to nobody/,
    ],
    [
      'a machine that a failed instance left',
      ({ truth }) => truth.machines.push({ ...first(truth.machines), ref: 'ref-c' }),
      /machine ref-c .* belongs to nobody/,
    ],
    [
      'a state on the way',
      ({ books }) => Object.assign(first(books.instances), { status: 'STOPPING' }),
      /a is still STOPPING/,
    ],
    ['a running instance without a claim', ({ books }) => books.claims.pop(), /a \(ONLINE\) has no claim/],
    [
      'a claim that a stop did not give back',
      ({ books }) => books.claims.push({ instanceId: 'b', ...placement }),
      /b \(STOPPED\) still has a claim/,
    ],
    [
      'a claim without an instance',
      ({ books }) => books.claims.push({ instanceId: 'x', ...placement }),
      /claim of x belongs to nobody/,
    ],
    [
      'more claims than units',
      ({ books }) => books.claims.push(...['x', 'y', 'z'].map((id) => ({ instanceId: id, ...placement }))),
      /4 of the 3 units of h100-sxm-1x in eu-frankfurt are claimed/,
    ],
    ['a lost volume', ({ truth }) => truth.volumes.pop(), /volume v \(ATTACHED\) is gone/],
    [
      'a volume that was deleted and is there',
      ({ truth }) => truth.volumes.push({ ...first(truth.volumes), ref: 'ref-w' }),
      /volume ref-w belongs to nobody/,
    ],
    [
      'an attachment that only a row has',
      ({ truth }) => truth.attachments.pop(),
      /only a row says: ref-v on ref-a attached/,
    ],
    [
      'an attachment that only the platform has',
      ({ books }) => books.attachments.pop(),
      /only the platform says: ref-v on ref-a/,
    ],
    [
      'open work',
      ({ books }) => books.work.push({ resourceId: 'a', kind: 'stop', leaseToken: null, lastError: 'x' }),
      /a has open work: stop \(x\)/,
    ],
    [
      'a unit that was sold while it was taken',
      ({ truth }) => truth.units.push({ at: 3, event: 'refused', ref: 'ref-x', ...there }),
      /no unit of h100-sxm-1x left for ref-x/,
    ],
    [
      'more units in use than there are, for a moment',
      ({ truth }) => {
        for (const ref of ['ref-x', 'ref-y', 'ref-z'])
          truth.units.push({ at: 5, event: 'taken', ref, ...there });
        truth.units.push({ at: 6, event: 'freed', ref: 'ref-z', ...there });
      },
      /4 of 3 units of h100-sxm-1x in hal-fra1-b were in use at 5/,
    ],
  ])('%s', (_name, change, finding) => {
    const world = inBalance();
    change(world);
    expect(find(world)).toContainEqual(expect.stringMatching(finding));
  });
});

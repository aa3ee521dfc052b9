import { describe, expect, it } from 'vitest';
import { diagnoseFreeUnits } from '../../kit/diagnosis.ts';
import { aCatalog } from '../catalog.fixture.ts';
import { countUnits, type HostAnswer } from './inventory.ts';
import { aClaim, aGpu, aHost } from './room.fixture.ts';

const gpus = (...states: ('free' | 'claimed')[]) =>
  states.map((state, at) => aGpu(`0000:1${at}:00.0`, { state }));
const seen = (name: string, overrides: Parameters<typeof aHost>[0] = {}) => ({
  host: name,
  view: aHost({ name, ...overrides }),
});

describe('the inventory', () => {
  it('counts the room on the hosts of each datacenter; GPUs on two hosts do not add up to one machine', () => {
    const answers = [
      seen('kvm-1', { gpus: gpus('free', 'free', 'free') }),
      seen('kvm-2', { gpus: gpus('free', 'claimed') }),
      seen('kvm-3', { datacenter: 'ams' }),
    ];
    expect(countUnits(aCatalog(), answers)).toMatchObject({
      answer: 'counted',
      free: [
        { offerId: 'small', datacenter: 'fra', units: 8 },
        { offerId: 'small', datacenter: 'ams', units: 4 },
        { offerId: 'gpu', datacenter: 'fra', units: 1 },
      ],
      counted: [],
    });
  });

  it('names the machines that are subtracted from it, including those still being created', () => {
    const claims = [
      aClaim({ ref: 'runs' }),
      aClaim({ ref: 'begins', state: 'open' }),
      aClaim({ ref: 'stopped', state: 'released' }),
      aClaim({ ref: undefined }),
    ];
    const answers = [seen('kvm-1', { claims }), seen('kvm-2', { claims: [aClaim({ ref: 'there' })] })];
    expect(countUnits(aCatalog(), answers)).toMatchObject({ counted: ['runs', 'begins', 'there'] });
  });

  it('excludes hosts that are cordoned, in another group, or do not answer [libvirt-inventory-down]', () => {
    const answers = [
      seen('kvm-1', { cordon: 'x' }),
      seen('kvm-2', { group: 'big' }),
      { host: 'kvm-3', unknown: 'kvm-3: no route' },
    ];
    const units = countUnits(aCatalog(), answers);
    expect(units.answer === 'counted' && units.free.map((one) => one.units)).toEqual([0, 0, 0]);
    const big = countUnits(aCatalog({ host_group: 'big' }), answers);
    expect(big.answer === 'counted' && big.free.map((one) => one.units)).toEqual([4, 0, 0]);
  });

  const small = aHost({ sellable: { vcpus: 16, memoryMb: 65_536, diskGb: 11.8 } });
  const full = (ref: string | undefined) => aHost({ claims: [aClaim({ ref, vcpus: 16 })] });
  const disk = 'kvm-1: it has 11.8 free GB of disk, but 50 are needed';
  const cpus = 'kvm-1: it has 0 free vCPUs, but 4 are needed';
  it.each<[string, HostAnswer[], string[], string[] | undefined]>([
    ['no host has the size of', [{ host: 'kvm-1', view: small }], [disk], [disk]],
    ['Berth’s own machines leave no room for', [{ host: 'kvm-1', view: full('berth-a') }], [cpus], undefined],
    ['machines of others leave no room for', [{ host: 'kvm-1', view: full(undefined) }], [cpus], [cpus]],
    [
      'a fault that passes closes the host for',
      [{ host: 'kvm-1', view: aHost({ fault: 'its pool is read-only' }) }],
      ['kvm-1: its pool is read-only'],
      undefined,
    ],
    [
      'a silent host may fit',
      [
        { host: 'kvm-1', view: small },
        { host: 'kvm-2', unknown: 'no route' },
      ],
      [disk, 'kvm-2: it does not answer'],
      undefined,
    ],
  ])(
    'says which limit on which host leaves no unit: %s the offer [libvirt-no-room]',
    (_why, answers, obstacles, misfits) => {
      const found = countUnits(aCatalog(), answers);
      const offer = found.answer === 'counted' ? found.free[0] : undefined;
      expect(offer).toMatchObject({ offerId: 'small', units: 0, obstacles });
      expect(offer?.misfits).toEqual(misfits);
      const line =
        misfits === undefined
          ? { verdict: 'warning', finding: `There is room for 0 more: ${obstacles.join('; ')}.` }
          : { verdict: 'broken', subject: 'offer small in fra' };
      expect(diagnoseFreeUnits(found, 'Add a host.')[0]).toMatchObject(line);
    },
  );

  it('is unknown if no host answers', () => {
    expect(countUnits(aCatalog(), [{ host: 'kvm-1', unknown: 'kvm-1: no route' }])).toEqual({
      answer: 'unknown',
      reason: 'no host answers: kvm-1: no route',
    });
  });

  it('shows the operator each host: its usage, its GPUs, and why it is closed or silent [libvirt-hosts]', () => {
    const address = '0000:10:00.0';
    const claims = [aClaim({ ref: 'berth-a', pciFunctions: [address] })];
    const view = {
      claims,
      gpus: [
        aGpu(address, { state: 'claimed', reason: 'a domain has it' }),
        aGpu('0000:11:00.0', { state: 'quarantined', reason: 'it did not come back' }),
      ],
    };
    const answers = [seen('kvm-1', view), seen('kvm-2'), { host: 'kvm-3', unknown: 'kvm-3: no route' }];
    const counted = countUnits(aCatalog(), answers, ['kvm-2']);
    expect(counted.answer === 'counted' && counted.hosts).toEqual([
      {
        host: 'kvm-1',
        state: 'open',
        vcpus: { total: 16, taken: 4 },
        memoryGb: { total: 64, taken: 8 },
        diskGb: { total: 500, taken: 50 },
        devices: [
          { id: address, type: 'H100', state: 'claimed', ref: 'berth-a', detail: 'a domain has it' },
          { id: '0000:11:00.0', type: 'H100', state: 'quarantined', detail: 'it did not come back' },
        ],
      },
      expect.objectContaining({
        host: 'kvm-2',
        state: 'closed',
        detail: expect.stringContaining('operator'),
        devices: [],
      }),
      { host: 'kvm-3', state: 'silent', detail: 'kvm-3: no route' },
    ]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aClaim, aGpu, aHost, aWish } from './room.fixture.ts';
import { chooseGpus, type HostView, obstacleOf, type Placed, placeMachine, roomOf, unitsOn } from './room.ts';

const hostOf = (placed: Placed): string | undefined =>
  'hosts' in placed ? placed.hosts[0]?.name : undefined;
const gpuWish = (gpuCount: number) => aWish({ gpuCount, gpuType: 'H100' });

describe('the room of a host', () => {
  it('is the capacity minus the claims; a stopped machine that released its resources takes only disk', () => {
    const claims = [
      aClaim(),
      aClaim({ ref: 'berth-b', state: 'released' }),
      aClaim({ ref: 'berth-c', state: 'open' }),
    ];
    expect(roomOf(aHost({ claims, otherDiskGb: 100 }))).toEqual({ vcpus: 8, memoryMb: 49_152, diskGb: 250 });
  });

  it.each<[string, Partial<HostView>, string]>([
    ['another group', { group: 'big' }, 'not in the group default'],
    ['another datacenter', { datacenter: 'ams' }, 'not in fra'],
    ['a cordon', { cordon: 'a disk is replaced' }, 'it is cordoned: a disk is replaced'],
    ['no vCPUs', { claims: [aClaim({ vcpus: 13 })] }, 'it has 3 free vCPUs, but 4 are needed'],
    [
      'no memory',
      { claims: [aClaim({ memoryMb: 65_000 })] },
      'it has 536 free MiB of memory, but 8192 are needed',
    ],
    ['no address', { addresses: 0 }, 'it has 0 free ports and addresses, but 1 are needed'],
    ['no disk', { otherDiskGb: 460.5 }, 'it has 39.5 free GB of disk, but 50 are needed'],
  ])('is none with %s', (_name, host, reason) => {
    expect(obstacleOf(aHost(host), aWish())).toContain(reason);
    expect(unitsOn(aHost(host), aWish())).toBe(0);
    expect(obstacleOf(aHost(), aWish())).toBeUndefined();
  });

  it('is exhausted when no address is free', () => {
    expect(unitsOn(aHost(), aWish())).toBe(4);
    expect(unitsOn(aHost({ addresses: 2 }), aWish())).toBe(2);
  });

  it('counts free GPUs of the right type', () => {
    const states = ['free', 'claimed', 'dirty', 'quarantined', 'unusable'] as const;
    const gpus = states.map((state, at) => aGpu(`0000:1${at}:00.0`, { state }));
    const host = aHost({ gpus: [...gpus, aGpu('0000:20:00.0', { type: 'L40' })] });
    expect(unitsOn(host, gpuWish(1))).toBe(1);
    expect(obstacleOf(host, gpuWish(2))).toBe('it has 1 free H100, but 2 are needed');
  });

  it('in units is the number of machines that could be placed one after another [libvirt-units]', () => {
    const size = fc.record({
      vcpus: fc.nat(9),
      memoryMb: fc.nat(9000),
      diskGb: fc.nat(90),
      gpuCount: fc.nat(3),
    });
    fc.assert(
      fc.property(size, fc.nat(5), (wanted, gpuTotal) => {
        const wish = aWish({ ...wanted, vcpus: wanted.vcpus + 1, gpuType: 'H100' });
        let host = aHost({ gpus: Array.from({ length: gpuTotal }, (_, at) => aGpu(`0000:1${at}:00.0`)) });
        const units = unitsOn(host, wish);
        let placed = 0;
        for (;;) {
          const answer = placeMachine(wish, [host], 'spread');
          if (!('hosts' in answer)) break;
          placed++;
          const gpus = chooseGpus(host, wish);
          host = {
            ...host,
            claims: [...host.claims, aClaim({ ...wish, ref: `berth-${placed}`, pciFunctions: gpus })],
            gpus: host.gpus.map((gpu) => (gpus.includes(gpu.address) ? { ...gpu, state: 'claimed' } : gpu)),
          };
        }
        expect(placed).toBe(units);
      }),
    );
  });
});

describe('a machine is placed', () => {
  const full = aHost({ name: 'kvm-1', claims: [aClaim({ vcpus: 10 })] });
  const empty = aHost({ name: 'kvm-2' });

  it('on the emptiest or the fullest host, by policy', () => {
    expect(hostOf(placeMachine(aWish(), [full, empty], 'spread'))).toBe('kvm-2');
    expect(hostOf(placeMachine(aWish(), [full, empty], 'pack'))).toBe('kvm-1');
  });

  it('on the same host in any order, by name in a tie', () => {
    const hosts = ['kvm-3', 'kvm-1', 'kvm-2'].map((name) => aHost({ name }));
    for (const policy of ['spread', 'pack'] as const)
      for (const some of [hosts, hosts.toReversed()])
        expect(hostOf(placeMachine(aWish(), some, policy))).toBe('kvm-1');
  });

  it('on a GPU host only if necessary, when it needs no GPU', () => {
    const gpuHost = aHost({ name: 'kvm-0', gpus: [aGpu('0000:18:00.0')] });
    expect(hostOf(placeMachine(aWish(), [gpuHost, full], 'spread'))).toBe('kvm-1');
    expect(hostOf(placeMachine(aWish({ vcpus: 8 }), [gpuHost, full], 'spread'))).toBe('kvm-0');
  });

  it('with GPUs of one NUMA node, and leaves the larger group whole', () => {
    const gpus = [
      aGpu('0000:10:00.0', {}, 0),
      aGpu('0000:11:00.0', {}, 0),
      aGpu('0000:12:00.0', {}, 0),
      aGpu('0000:90:00.0', {}, 1),
      aGpu('0000:91:00.0', {}, 1),
    ];
    const gpusFor = (count: number): unknown => chooseGpus(aHost({ gpus }), gpuWish(count));
    expect(gpusFor(2)).toEqual(['0000:90:00.0', '0000:91:00.0']);
    expect(gpusFor(3)).toEqual(['0000:10:00.0', '0000:11:00.0', '0000:12:00.0']);
    expect(gpusFor(4)).toEqual(['0000:10:00.0', '0000:11:00.0', '0000:12:00.0', '0000:90:00.0']);
  });

  it('nowhere if no single host has enough room, with a reason for each', () => {
    const hosts = ['kvm-1', 'kvm-2'].map((name) => aHost({ name, gpus: [aGpu('0000:18:00.0')] }));
    expect(placeMachine(gpuWish(2), [...hosts, aHost({ name: 'kvm-3', cordon: 'x' })], 'pack')).toEqual({
      refused: [
        { host: 'kvm-1', reason: 'it has 1 free H100, but 2 are needed' },
        { host: 'kvm-2', reason: 'it has 1 free H100, but 2 are needed' },
        { host: 'kvm-3', reason: 'it is cordoned: x' },
      ],
    });
  });
});

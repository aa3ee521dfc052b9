import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { collectLog } from '../../../../test/support/doubles/log.ts';
import { type Gpu, type GpuTypes, listGpus } from './gpus.ts';
import { damageOf, markGpu, planReset, sanitizeGpu, sweepGpus } from './machine-gpus.ts';
import { type PciFunction, scanGpus } from './pci-functions.ts';
import { geForce, hopper, openHostWith, type SysfsTree, sysfsFile, withoutAcs } from './sysfs.fixture.ts';

const types: GpuTypes = { RTX_4090: ['10de:2684'], H100: ['10de:2330', '10de:2331'] };
const card = '0000:65:00.0';
const noClaims: ReadonlySet<string> = new Set();

async function gpusOf(tree: SysfsTree, claimed = noClaims): Promise<Gpu[]> {
  const { shell, place } = openHostWith(tree);
  return listGpus(await scanGpus(shell, place), types, claimed);
}

const brief = (gpus: readonly Gpu[]): unknown[] =>
  gpus.map(({ address, type, state, reason }) => [address, type, state, reason]);

/** The tree with one function changed. */
const changed = (address: string, otherwise: Partial<SysfsTree[string]>): SysfsTree => {
  const of = geForce[address];
  if (of === undefined) throw new Error(address);
  return { ...geForce, [address]: { ...of, ...otherwise } };
};

describe('the GPUs of a host', () => {
  it('are those of the sold types, each with all functions of its slot', async () => {
    const [gpu, ...others] = await gpusOf(geForce);
    expect(others).toEqual([]);
    expect([gpu?.address, gpu?.type, gpu?.state]).toEqual([card, 'RTX_4090', 'free']);
    expect(gpu?.functions.map(({ address, id }) => [address, id])).toEqual([
      [card, '10de:2684'],
      ['0000:65:00.1', '10de:22ba'],
    ]);
    expect(gpu?.functions[0]).toEqual({
      address: card,
      id: '10de:2684',
      class: '0300',
      driver: 'vfio-pci',
      group: '14',
      resetMethods: ['bus'],
      bridge: '0000:64:00.0',
      canResetBus: true,
      answersAs: '10de:2684',
      fatalErrors: 0,
      nonfatalErrors: 0,
      numaNode: 0,
      linkWidth: 16,
    });
  });

  it('are sold separately when two share a switch', async () => {
    expect(brief(await gpusOf(hopper))).toEqual([
      ['0000:18:00.0', 'H100', 'free', undefined],
      ['0000:2a:00.0', 'H100', 'free', undefined],
    ]);
  });

  it('are empty on a host without GPUs or without PCI', async () => {
    expect(await gpusOf({})).toEqual([]);
    const { shell } = openHostWith({});
    expect((await scanGpus(shell, { stateDir: '/none', root: '/none' })).functions.size).toBe(0);
  });

  it('are claimed when a domain names any of their functions', async () => {
    expect(brief(await gpusOf(geForce, new Set(['0000:65:00.1'])))).toEqual([
      [card, 'RTX_4090', 'claimed', 'a domain has it'],
    ]);
  });

  it.each<[string, SysfsTree, string]>([
    ['the group has a stranger', withoutAcs, '0000:01:00.0 shares IOMMU group 1 with 0000:02:00.0'],
    ['the IOMMU is off', without(geForce, 'group'), '0000:65:00.0 is in no IOMMU group: the IOMMU is off'],
    [
      'its driver is another',
      changed(card, { driver: 'nvidia' }),
      '0000:65:00.0 is bound to nvidia and not to vfio-pci',
    ],
    [
      'its sound has no driver',
      without(geForce, 'driver', '0000:65:00.1'),
      '0000:65:00.1 is bound to no driver and not to vfio-pci',
    ],
    ['it fell off the bus', changed(card, { config: 'ffffffff' }), '0000:65:00.0 does not answer on the bus'],
    [
      'its configuration space cannot be read',
      changed(card, { config: '' }),
      '0000:65:00.0 does not answer on the bus',
    ],
  ])('are unusable where %s', async (_name, tree, reason) => {
    expect(brief(await gpusOf(tree))).toEqual([[expect.anything(), expect.anything(), 'unusable', reason]]);
  });
});

function without(tree: SysfsTree, key: 'group' | 'driver', only?: string): SysfsTree {
  return Object.fromEntries(
    Object.entries(tree).map(([address, { [key]: taken, ...rest }]) => [
      address,
      only === undefined || only === address
        ? rest
        : { ...rest, ...(taken !== undefined && { [key]: taken }) },
    ]),
  );
}

describe('a mark', () => {
  it('is set once: a second machine does not get the GPU [gpu-marked-once]', async () => {
    const { shell, place } = openHostWith(geForce);
    expect(await markGpu(shell, place, card, 'berth-a', '1')).toBe(true);
    expect(await markGpu(shell, place, card, 'berth-b', '2')).toBe(false);
    expect(await markGpu(shell, place, card, 'berth', '1')).toBe(false);
    expect(await markGpu(shell, place, card, 'berth-a', '3')).toBe(true);
    expect(brief(listGpus(await scanGpus(shell, place), types, noClaims))).toEqual([
      [card, 'RTX_4090', 'dirty', 'it was not reset after its last machine'],
    ]);
  });

  it('is won by exactly one of many that set it at once', async () => {
    const { shell, place } = openHostWith(geForce);
    const refs = Array.from({ length: 6 }, (_, at) => `berth-${at}`);
    const had = await Promise.all(refs.map((ref) => markGpu(shell, place, card, ref, 'n')));
    expect(had.filter(Boolean)).toHaveLength(1);
  });

  it('fails with an error, not a refusal, if it cannot be written', async () => {
    const { shell, place } = openHostWith(geForce);
    writeFileSync(`${place.root}/var`, 'no folder');
    await expect(markGpu(shell, place, card, 'berth-a', '1')).rejects.toThrow('cannot be written');
  });
});

describe('between two machines', () => {
  async function dirty(tree: SysfsTree) {
    const { shell, place } = openHostWith(tree);
    await markGpu(shell, place, card, 'berth-a', '1');
    const scan = await scanGpus(shell, place);
    const [gpu] = listGpus(scan, types, noClaims);
    if (gpu === undefined) throw new Error('no GPU');
    const now = async (): Promise<unknown[]> =>
      brief(listGpus(await scanGpus(shell, place), types, noClaims));
    return { shell, place, scan, gpu, now };
  }

  it('a GPU without a reset of its own is reset with its bridge, and is then free [gpu-sanitized]', async () => {
    const { shell, place, scan, gpu, now } = await dirty(geForce);
    expect(await sanitizeGpu(shell, place, gpu, scan)).toEqual({ outcome: 'clean' });
    expect(readFileSync(sysfsFile(place.root, '0000:64:00.0', 'reset_subordinate'), 'utf8')).toBe('1');
    expect(await now()).toEqual([[card, 'RTX_4090', 'free', undefined]]);
  });

  it('each function is reset by itself if possible', async () => {
    const flr = { resetMethods: 'flr bus' };
    const { shell, place, scan, gpu } = await dirty({
      ...changed(card, flr),
      '0000:65:00.1': { ...sound(), ...flr },
    });
    expect(await sanitizeGpu(shell, place, gpu, scan)).toEqual({ outcome: 'clean' });
    expect(readFileSync(sysfsFile(place.root, card, 'reset'), 'utf8')).toBe('1');
    expect(readFileSync(sysfsFile(place.root, '0000:65:00.1', 'reset'), 'utf8')).toBe('1');
    expect(readFileSync(sysfsFile(place.root, '0000:64:00.0', 'reset_subordinate'), 'utf8')).toBe('');
  });

  it('a GPU that does not answer after its reset stays out of use, with the reason [gpu-quarantined]', async () => {
    const { shell, place, scan, gpu, now } = await dirty(geForce);
    writeFileSync(sysfsFile(place.root, card, 'config'), Buffer.from('ffffffff', 'hex'));
    const reason = '0000:65:00.0 answers as ffff:ffff after the reset, not as 10de:2684';
    expect(await sanitizeGpu(shell, place, gpu, scan)).toEqual({ outcome: 'quarantined', reason });
    writeFileSync(sysfsFile(place.root, card, 'config'), Buffer.from('de108426', 'hex'));
    expect(await now()).toEqual([[card, 'RTX_4090', 'quarantined', reason]]);
    expect(await markGpu(shell, place, card, 'berth-b', '2')).toBe(false);
  });

  it('a GPU whose reset fails stays out of use', async () => {
    const { shell, place, gpu, now } = await dirty(geForce);
    const scan = await scanGpus(shell, place);
    const nowhere = { ...gpu, functions: gpu.functions.map((one) => ({ ...one, bridge: '0000:99:00.0' })) };
    const outcome = await sanitizeGpu(shell, place, nowhere, scan);
    expect(outcome).toEqual({ outcome: 'quarantined', reason: expect.stringContaining('the reset failed') });
    expect(await now()).toEqual([
      [card, 'RTX_4090', 'quarantined', expect.stringContaining('the reset failed')],
    ]);
  });

  it('a GPU that another machine got in the meantime is not reset, freed or put out of use [gpu-reset-fenced]', async () => {
    const { shell, place, scan, gpu, now } = await dirty(geForce);
    expect(await sanitizeGpu(shell, place, gpu, scan)).toEqual({ outcome: 'clean' });
    writeFileSync(sysfsFile(place.root, '0000:64:00.0', 'reset_subordinate'), '');
    await markGpu(shell, place, card, 'berth-b', '2');
    expect(await sanitizeGpu(shell, place, gpu, scan)).toEqual({ outcome: 'changed' });
    expect(readFileSync(sysfsFile(place.root, '0000:64:00.0', 'reset_subordinate'), 'utf8')).toBe('');
    const unresettable = {
      ...gpu,
      functions: gpu.functions.map((one) => ({ ...one, resetMethods: [], canResetBus: false })),
    };
    expect(await sanitizeGpu(shell, place, unresettable, scan)).toEqual({ outcome: 'changed' });
    expect(await now()).toEqual([[card, 'RTX_4090', 'dirty', expect.anything()]]);
  });
});

function sound(): SysfsTree[string] {
  const of = geForce['0000:65:00.1'];
  if (of === undefined) throw new Error('no sound');
  return of;
}

describe('a reset plan', () => {
  async function functionsOf(tree: SysfsTree) {
    const { shell, place } = openHostWith(tree);
    const scan = await scanGpus(shell, place);
    return { scan, gpus: listGpus(scan, types, noClaims) };
  }

  it('never resets a bus with another device on it', async () => {
    const neighbour: SysfsTree = { ...geForce, '0000:65:01.0': { ...sound(), id: '8086:10d3', group: 15 } };
    const { scan, gpus } = await functionsOf(neighbour);
    expect(planReset(gpus[0]?.functions ?? [], scan)).toEqual({
      impossible: 'a reset of 0000:65:00.0 would also reset 0000:65:01.0',
    });
  });

  it('resets the function itself when it is alone on its bus', async () => {
    const { '0000:65:00.1': _sound, ...alone } = geForce;
    const { scan, gpus } = await functionsOf({
      ...alone,
      '0000:64:00.0': { ...bridge(), resetsSubordinate: false },
    });
    expect(planReset(gpus[0]?.functions ?? [], scan)).toEqual({ files: ['0000:65:00.0/reset'] });
  });

  it.each([
    ['bus', '0000:65:00.0 can be reset only with its bus, but its bridge has no reset_subordinate'],
    ['', 'the kernel has no reset method for 0000:65:00.0 (10de:2684)'],
  ])('does not exist if the kernel has only %j and the bridge nothing', async (resetMethods, impossible) => {
    const tree = {
      ...changed(card, { resetMethods }),
      '0000:64:00.0': { ...bridge(), resetsSubordinate: false },
    };
    const { scan, gpus } = await functionsOf(tree);
    expect(planReset(gpus[0]?.functions ?? [], scan)).toEqual({ impossible });
  });
});

function bridge(): SysfsTree[string] {
  const of = geForce['0000:64:00.0'];
  if (of === undefined) throw new Error('no bridge');
  return of;
}

describe('after a reset', () => {
  const was: PciFunction = {
    address: card,
    id: '10de:2684',
    class: '0300',
    driver: 'vfio-pci',
    group: '14',
    resetMethods: ['flr'],
    bridge: undefined,
    canResetBus: false,
    answersAs: '10de:2684',
    fatalErrors: 2,
    nonfatalErrors: 3,
    numaNode: 0,
    linkWidth: 16,
  };
  const seenAs = (is: Partial<PciFunction>) => ({
    functions: new Map([[card, { ...was, ...is }]]),
    marks: new Map(),
  });

  it('an unchanged GPU is healthy, also with old errors', () => {
    expect(damageOf([was], seenAs({}))).toBeUndefined();
  });

  it.each<[Partial<PciFunction>, string]>([
    [{ answersAs: undefined }, 'answers as nothing'],
    [{ driver: undefined }, 'is bound to no driver'],
    [{ fatalErrors: 3 }, 'fatal PCIe errors'],
    [{ nonfatalErrors: 4 }, 'reported PCIe errors'],
    [{ linkWidth: 8 }, 'has 8 lanes after the reset instead of 16'],
  ])('%j is damage', (is, reason) => {
    expect(damageOf([was], seenAs(is))).toContain(reason);
  });

  it('a missing function is damage', () => {
    expect(damageOf([was], { functions: new Map(), marks: new Map() })).toContain('is gone from the bus');
  });
});

describe('a sweep', () => {
  it('resets GPUs that no domain has any more, and reports those out of use', async () => {
    const { shell, place } = openHostWith({ ...hopper, ...geForce });
    for (const address of [card, '0000:18:00.0', '0000:2a:00.0'])
      await markGpu(shell, place, address, 'berth-a', '1');
    writeFileSync(sysfsFile(place.root, '0000:64:00.0', 'reset_subordinate'), '');
    rmSync(sysfsFile(place.root, '0000:2a:00.0', 'reset_method'));
    const { log, lines } = collectLog();
    expect(await sweepGpus(shell, place, types, new Set(['0000:18:00.0']), log)).toBe(1);
    const scan = await scanGpus(shell, place);
    expect(brief(listGpus(scan, types, noClaims)).map((gpu) => (gpu as unknown[]).slice(0, 3))).toEqual([
      ['0000:18:00.0', 'H100', 'dirty'],
      ['0000:2a:00.0', 'H100', 'quarantined'],
      [card, 'RTX_4090', 'free'],
    ]);
    expect(lines.map(({ level, fields }) => [level, fields['gpu'], fields['reason']])).toEqual([
      ['error', '0000:2a:00.0', 'the kernel has no reset method for 0000:2a:00.0 (10de:2330)'],
      ['info', card, undefined],
    ]);
    expect(await sweepGpus(shell, place, types, new Set(['0000:18:00.0']), log)).toBe(0);
  });

  it('resets a GPU that an operator returned to use as in docs/how-to/gpus.md', async () => {
    const { shell, place } = openHostWith(geForce);
    await markGpu(shell, place, card, 'berth-a', '1');
    const mark = join(place.root, place.stateDir, 'gpus', card);
    writeFileSync(mark, 'quarantined its fan was loose\n');
    const { log } = collectLog();
    expect(await sweepGpus(shell, place, types, noClaims, log)).toBe(0);
    writeFileSync(mark, 'dirty operator 1\n');
    expect(await sweepGpus(shell, place, types, noClaims, log)).toBe(1);
    expect(existsSync(mark)).toBe(false);
  });
});

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aCatalog } from '../catalog.fixture.ts';
import { readDomainXml } from '../domain-xml.ts';
import { MemoryHost } from '../memory-host.fixture.ts';
import { openMemoryPlatform } from '../platform.fixture.ts';
import { hopper, type SysfsTree, sysfsFile } from './sysfs.fixture.ts';

const CARDS = ['0000:18:00.0', '0000:2a:00.0'];
const gpu = { offerId: 'gpu', gpuCount: 2, gpuType: 'H100' };

/** A host with two cards, both taken by one machine of the offer. */
function aGpuHost(tree: SysfsTree = hopper, onStop: 'release' | 'hold' = 'release') {
  const host = new MemoryHost({}, tree);
  const catalog = aCatalog();
  const offers = new Map([...catalog.offers].map(([id, offer]) => [id, { ...offer, onStop }]));
  const { bench, lines } = openMemoryPlatform([host], { ...catalog, offers });
  const root = host.root ?? '';
  const marks = join(root, 'var/lib/berth/gpus');
  return {
    host,
    bench,
    lines,
    create: (name: string) => bench.create(bench.ref(name), gpu),
    /** The PCI functions in the machine's stored definition. */
    given: async (ref: string) =>
      readDomainXml(await host.virsh(['dumpxml', '--inactive', '--', ref])).pciFunctions,
    marked: (): string[] =>
      existsSync(marks) ? readdirSync(marks).filter((name) => !name.startsWith('.')) : [],
    resets: () => CARDS.filter((card) => readFileSync(sysfsFile(root, card, 'reset'), 'utf8') === '1'),
    async free() {
      const inventory = await bench.driver.inventory?.();
      if (inventory?.answer !== 'counted') throw new Error(JSON.stringify(inventory));
      return inventory.free.find(({ offerId }) => offerId === 'gpu')?.units;
    },
  };
}

describe('the GPUs of a machine', () => {
  it('are claimed and marked before it starts, and reset before they are sold again [gpu-lifecycle]', async () => {
    const { bench, create, given, marked, resets, free } = aGpuHost();
    expect(await free()).toBe(1);
    const { ref } = await create('a');
    expect(await given(ref)).toEqual(CARDS);
    expect(marked()).toEqual(CARDS);
    expect(resets()).toEqual([]);
    expect(await free()).toBe(0);
    expect(await bench.driver.create(bench.spec(bench.ref('b'), gpu), null)).toMatchObject({
      code: 'capacity',
      sideEffect: 'none',
    });
    await bench.destroy(ref);
    expect(resets()).toEqual(CARDS);
    expect(marked()).toEqual([]);
    expect(await free()).toBe(1);
  });

  it('are taken out of a disowned machine, reset, and sold again', async () => {
    const { bench, create, given, marked, resets, free } = aGpuHost(hopper, 'hold');
    const { ref } = await create('a');
    await bench.stop(ref);
    expect([await given(ref), await free()]).toEqual([CARDS, 0]);
    expect(await bench.driver.disown?.(ref, null)).toMatchObject({ outcome: 'done' });
    expect([await given(ref), resets(), marked(), await free()]).toEqual([[], CARDS, [], 1]);
    expect(await bench.driver.get(ref)).toMatchObject({ answer: 'gone' });
  });

  it('are marked before the first instruction of its guest', async () => {
    const { host, bench, marked } = aGpuHost();
    let atStart: string[] = [];
    const { virsh } = host;
    host.virsh = (args, call) => {
      if (args[0] === 'start') atStart = marked();
      return virsh(args, call);
    };
    await bench.create(bench.ref('a'), gpu);
    expect(atStart).toEqual(CARDS);
  });

  it('go to another machine while it is stopped, and it starts again when that one ends [gpu-released]', async () => {
    const { bench, create, given, marked, resets } = aGpuHost();
    const { ref } = await create('a');
    await bench.stop(ref);
    expect([await given(ref), marked(), resets()]).toEqual([[], [], CARDS]);
    const other = await create('b');
    expect(await bench.driver.start(ref, null)).toMatchObject({
      outcome: 'failed',
      code: 'capacity',
      sideEffect: 'none',
    });
    expect(await given(ref)).toEqual([]);
    await bench.destroy(other.ref);
    expect(await bench.start(ref)).toMatchObject({ power: 'running' });
    expect([await given(ref), marked()]).toEqual([CARDS, CARDS]);
  });

  it('stay with it while it is stopped, if the offer holds them [gpu-held]', async () => {
    const { bench, create, given, resets, free } = aGpuHost(hopper, 'hold');
    const { ref } = await create('a');
    await bench.stop(ref);
    expect([await given(ref), resets(), await free()]).toEqual([CARDS, [], 0]);
    expect(await bench.start(ref)).toMatchObject({ power: 'running' });
    await bench.destroy(ref);
    expect([resets(), await free()]).toEqual([CARDS, 1]);
  });

  it('stay with it across a restart, without a reset', async () => {
    const { bench, create, given, resets } = aGpuHost();
    const { ref } = await create('a');
    await bench.finish('restart', (cookie) => bench.driver.restart(ref, 'one', cookie));
    expect([await given(ref), resets()]).toEqual([CARDS, []]);
  });

  it('are out of use if they cannot be reset, and the log says so', async () => {
    const { '0000:18:00.0': card, ...others } = hopper;
    if (card === undefined) throw new Error('the tree has no such card');
    const { resetMethods: _, ...withoutReset } = card;
    const tree = { ...others, '0000:18:00.0': withoutReset };
    const { bench, create, marked, free, lines } = aGpuHost(tree);
    const { ref } = await create('a');
    await bench.destroy(ref);
    expect(marked()).toEqual(['0000:18:00.0']);
    expect(await free()).toBe(0);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        fields: expect.objectContaining({ gpu: '0000:18:00.0', host: 'kvm-1' }),
      }),
    );
    expect(await bench.driver.create(bench.spec(bench.ref('b'), gpu), null)).toMatchObject({
      code: 'capacity',
    });
  });

  it('are reset by the next inventory if a crash left them marked', async () => {
    const { host, bench, create, resets, free } = aGpuHost();
    const { ref } = await create('a');
    await host.virsh(['destroy', '--', ref]);
    await host.virsh(['undefine', '--', ref]);
    expect(await free()).toBe(1);
    expect(resets()).toEqual(CARDS);
    await bench.destroy(ref);
  });
});

import { describe, expect, it } from 'vitest';
import type { Instance } from './api.ts';
import { identify, refsByName } from './identity.ts';
import { mark, UUID } from './translate.ts';

const REF = 'berth-a';

/**
 * `uuid` is the id that Incus gave the instance. `noted` is the id in its mark, or null while it is made.
 */
function anInstance(name: string, uuid: string, noted: string | null = 'u1'): Instance {
  const marks = { [mark.createdBy]: 'berth', [mark.ref]: REF, ...(noted !== null && { [mark.uuid]: noted }) };
  return { name, config: { ...marks, [UUID]: uuid } } as unknown as Instance;
}

const [own, renamed, moving] = [
  anInstance(REF, 'u1'),
  anInstance('foo', 'u1'),
  anInstance('move-of-17', 'u1'),
];
const [copy, building, buildingFoo] = [
  anInstance('foo', 'u2'),
  anInstance(REF, 'u1', null),
  anInstance('foo', 'u2', null),
];

const cases: readonly [string, Instance[], string | undefined, string[]][] = [
  ['itself', [own], REF, []],
  ['under another name', [renamed], 'foo', []],
  ['beside a copy made by hand', [own, copy], REF, ['foo']],
  ['under another name, beside a copy that has its name', [renamed, anInstance(REF, 'u2')], 'foo', [REF]],
  ['only a copy, as it was removed', [copy], undefined, ['foo']],
  ['beside its temporary copy, while Incus moves it', [moving, own], REF, ['move-of-17']],
  ['the temporary copy, before that gets its name', [moving], 'move-of-17', []],
  ['with another id under its own name: a move changed that', [anInstance(REF, 'u2')], REF, []],
  ['with another id under a temporary name', [anInstance('move-of-17', 'u2')], 'move-of-17', []],
  ['while it is made', [building], REF, []],
  ['while it is made, under another name', [buildingFoo], 'foo', []],
  ['while it is made, beside a copy', [buildingFoo, building], REF, ['foo']],
  ['beside a copy from before its id was noted', [own, buildingFoo], REF, ['foo']],
];

describe('a machine is, of the instances that have its mark,', () => {
  it.each(cases)('%s', (_title, marked, machine, copies) => {
    for (const order of [marked, marked.toReversed()]) {
      const found = identify(REF, order);
      expect(found.machine?.name).toBe(machine);
      expect(found.copies.map(({ name }) => name).sort()).toEqual([...copies].sort());
    }
  });

  it('known by its ref as the holder of a volume, while a copy keeps its own name', () => {
    const foreign = { name: 'theirs', config: {} } as unknown as Instance;
    const refs = refsByName([renamed, anInstance('bar', 'u2'), foreign]);
    expect(Object.fromEntries(refs)).toEqual({ foo: REF, bar: 'bar', theirs: 'theirs' });
  });
});

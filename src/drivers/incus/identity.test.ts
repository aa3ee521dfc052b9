import { describe, expect, it } from 'vitest';
import type { Instance } from './api.ts';
import { identify, refsByName } from './identity.ts';
import { mark, UUID } from './translate.ts';

const REF = 'berth-a';

/**
 * `uuid` is the id that Incus gave the instance. `noted` is the id in its mark, or null if an earlier Berth made it.
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
const [copy, old, oldFoo] = [
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
  ['of an earlier Berth', [old], REF, []],
  ['of an earlier Berth, under another name', [oldFoo], 'foo', []],
  ['of an earlier Berth, beside a copy', [oldFoo, old], REF, ['foo']],
  ['beside a copy of a snapshot of before it was noted', [own, oldFoo], REF, ['foo']],
  [
    'one of two of an earlier Berth, and neither has its name',
    [oldFoo, anInstance('bar', 'u1', null)],
    undefined,
    ['foo', 'bar'],
  ],
];

describe('a machine is, of the instances that have its mark,', () => {
  it.each(cases)('%s', (_title, marked, machine, copies) => {
    for (const order of [marked, marked.toReversed()]) {
      const found = identify(REF, order);
      expect(found.machine?.name).toBe(machine);
      expect(found.copies.map(({ name }) => name).sort()).toEqual([...copies].sort());
    }
  });

  it('unknown only if several of an earlier Berth have other names', () => {
    const unclear = cases.filter(([, marked]) => identify(REF, marked).isUnclear).map(([title]) => title);
    expect(unclear).toEqual(['one of two of an earlier Berth, and neither has its name']);
  });

  it('known by its ref as the holder of a volume, while a copy keeps its own name', () => {
    const foreign = { name: 'theirs', config: {} } as unknown as Instance;
    const refs = refsByName([renamed, anInstance('bar', 'u2'), foreign]);
    expect(Object.fromEntries(refs)).toEqual({ foo: REF, bar: 'bar', theirs: 'theirs' });
  });
});

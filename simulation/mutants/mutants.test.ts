import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';
import { expect, it } from 'vitest';
import { applyMutant } from './mutant.ts';
import { mutants } from './mutants.ts';
import { replaceTable, seedOf, toTable } from './table.ts';

const read = (file: string): string => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

it.each(mutants.map((mutant) => [mutant.id, mutant] as const))(
  'the mutant %s fits the source',
  (_, mutant) => {
    for (const file of new Set(mutant.patches.map((patch) => patch.file))) {
      const patched = applyMutant(mutant, file, read(file));
      expect(patched).not.toBe(read(file));
      expect(parseSync(file, patched).errors).toEqual([]);
    }
  },
);

it('plants each leak, and each guard that is easy to lose', () => {
  const leaks = Array.from({ length: 13 }, (_, index) => `L${index + 1}`);
  const guards = [
    ...['late-create', 'visibility', 'volume-visibility', 'look'],
    ...['fencing', 'synchronous', 'claim-outside'],
    ...['resize-lost', 'resize-unclaimed', 'denial-on-doubt'],
    ...['pruned-by-creation'],
    ...['cordon-ignored', 'count-ignored', 'half-made', 'hold-forgets'],
    ...['listing-of-another', 'sold-by-another', 'unknown-host', 'moved-by-hand', 'frozen-by-another'],
  ];
  const ofLibvirt = [
    ...['loss-destroys', 'rowless-destroyed', 'lease-ends-first', 'found-by-name'],
    ...['created-over', 'copy-counted'],
  ];
  const ofIncus = ['R1', 'R2', 'I1', 'I2'];
  const ofOpenStack = [
    'renamed-gone',
    'copy-removed',
    'image-left',
    'address-left',
    'early-copy-kept',
    'cell-believed',
    'error-ends',
  ];
  const ofMarketplace = [
    ...['gone-at-once', 'create-again', 'no-sweep', 'blink', 'beyond-observed'],
    ...['cut-confirms', 'listed-unchanged'],
    ...['key-kept', 'poll-time', 'early-bill', 'late-discount', 'rounded-slices'],
    ...['delete-forgotten', 'delete-unproved', 'loss-deletes', 'shared-instance', 'losses-uncapped'],
    ...['roll-up-drops-last', 'roll-up-open-day', 'roll-up-charges'],
  ];
  expect(mutants.map(({ id }) => id)).toEqual([
    ...[...leaks, ...guards, ...ofLibvirt, ...ofIncus, ...ofOpenStack, ...ofMarketplace],
  ]);
  for (const { title, patches } of mutants) {
    expect(title).not.toBe('');
    expect(patches).not.toEqual([]);
  }
});

it('refuses a patch that is stale', () => {
  const mutant = { id: 'x', title: '', patches: [{ file: 'a.ts', find: 'b', replace: 'c' }] };
  expect(() => applyMutant(mutant, 'a.ts', 'none of it')).toThrow('0 times');
  expect(() => applyMutant(mutant, 'a.ts', 'b and b')).toThrow('2 times');
  expect(applyMutant(mutant, 'a.ts', 'a b')).toBe('a c');
  expect(applyMutant(mutant, 'other.ts', 'b b')).toBe('b b');
});

it('has a row for each mutant, found or not, between its marks', () => {
  const found = new Map([['L1', { invariant: 'I12', message: '', seed: 7 }]]);
  const table = toTable(mutants, found);
  expect(table).toContain('\nL1 I12 7\n');
  expect(table.match(/not found/g)).toHaveLength(mutants.length - 1);
  expect(replaceTable('a <!-- mutants --> old <!-- /mutants --> b', 'new')).toBe(
    'a <!-- mutants -->\n\nnew\n\n<!-- /mutants --> b',
  );
  const known = 'L2 I1 3';
  expect(toTable(mutants, found, known)).toContain(known);
  expect(() => replaceTable('nothing', 'new')).toThrow('mutants');
});

it('reads the seed of a mutant from its own table, not from that of the invariants', () => {
  expect(seedOf('I1', '- I1: what holds\n<!-- mutants -->\nI1 I3 7\nI12 I3 8')).toBe(7);
});

import { beforeEach, expect, it } from 'vitest';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import type { Store } from '../model/store.ts';
import { endRestore, restoredFrom, shareRestore } from './restored-rows.ts';

let store: Store;
beforeEach(async () => {
  store = await openTestStore();
  await store.transact((tx) => tx.marks.put('restored_from', 7));
});

const pending = (...platforms: string[]) =>
  Promise.all(platforms.map((platform) => restoredFrom({ store, platform })));

it('each platform ends a restore for itself, and a later start does not begin it again [restore-by-platform]', async () => {
  await shareRestore(store, ['default', 'east']);
  expect(await pending('default', 'east')).toEqual([7, 7]);
  expect(await endRestore({ store, platform: 'east' })).toBe(true);
  expect(await endRestore({ store, platform: 'east' })).toBe(false);
  await shareRestore(store, ['default', 'east']);
  expect(await pending('default', 'east')).toEqual([7, null]);
});

it('a restore in progress belongs to the platform `default` when others are added or removed', async () => {
  await shareRestore(store, ['default']);
  expect(await pending('default')).toEqual([7]);
  await shareRestore(store, ['default', 'east']);
  await shareRestore(store, ['default']);
  expect(await pending('default')).toEqual([7]);
  expect(await endRestore({ store, platform: 'default' })).toBe(true);
  expect(await pending('default')).toEqual([null]);
});

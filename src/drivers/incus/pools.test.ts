import { expect, it } from 'vitest';
import type { IncusApi } from './api.ts';
import { readPool } from './fleet.ts';

const GIB = 2 ** 30;
const source = '/var/lib/incus/disks/machines.img';

it.each<[string, { sparseBytes: number; freeBytes: number } | undefined, string, number]>([
  ['with room for the rest of its file', { sparseBytes: 90 * GIB, freeBytes: 90 * GIB }, source, 100],
  [
    'with less free below it than its file may grow',
    { sparseBytes: 90 * GIB, freeBytes: 10 * GIB },
    source,
    20,
  ],
  ['with a preallocated file on a full disk', { sparseBytes: 0, freeBytes: 0 }, source, 100],
  ['with a file that cannot be read', undefined, source, 100],
  ['on a block device', { sparseBytes: 90 * GIB, freeBytes: 0 }, '/dev/nvme1n1', 100],
])('a pool %s has the bytes that it can really take [incus-pool-file]', async (_what, file, of, gb) => {
  const pool = { driver: 'zfs', status: 'Created', config: { source: of }, bytes: 100 * GIB };
  const api = { client: { isLocal: true }, pool: async () => pool } as unknown as IncusApi;
  expect((await readPool(api, 'machines', undefined, async () => file)).bytes).toBe(gb * GIB);
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.ts';
import { systemRandom } from '../../runtime/system.ts';
import { openSqliteStore } from '../../store/sqlite/store.ts';
import { createAccount } from './accounts.ts';

it('makes an account again with the id that it had, and refuses an id that is none or is taken', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-accounts-'));
  const store = openSqliteStore(join(folder, 'berth.db'));
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const deps = { store, clock: new VirtualClock(), random: systemRandom };
  const id = `acct-${'0a'.repeat(10)}`;
  expect(await createAccount(deps, 'late', id)).toMatchObject({ id, name: 'late' });
  expect(await store.read.credentials.accountById(id)).toMatchObject({ name: 'late' });
  await expect(createAccount(deps, 'other', id)).rejects.toThrow(/id acct-.* already/);
  for (const wrong of ['', 'acct-1', `${id}0`, id.toUpperCase(), `inst-${'0'.repeat(20)}`])
    await expect(createAccount(deps, 'other', wrong)).rejects.toThrow(/no account id/);
  expect((await createAccount(deps, 'other')).id).toMatch(/^acct-[0-9a-f]{20}$/);
});

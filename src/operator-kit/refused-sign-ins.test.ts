import { expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { systemRandom } from '../runtime/system.ts';
import { openMemoryStore } from '../store/sqlite/store.ts';
import { createOperatorKey, Operators, revokeOperatorKey } from './keys.ts';

const FOLD_MS = 10 * 60_000;

function open() {
  const clock = new VirtualClock();
  const store = openMemoryStore();
  const lines: object[] = [];
  const log = { warn: (fields: object) => void lines.push(fields) };
  const operators = new Operators({ store, clock, log });
  return {
    clock,
    store,
    lines,
    operators,
    knock: (address: string, key = 'wrong') => operators.ofKey(key, { source: 'console', address }),
    rows: () => store.read.audit.page({ limit: 1_000 }),
    [Symbol.asyncDispose]: () => store.close(),
  };
}

it('folds refused keys into one row every ten minutes, with a count and their addresses [refused-sign-ins-folded]', async () => {
  await using test = open();
  const { clock, operators, knock, rows, lines } = test;
  await knock('192.0.2.1');
  await operators.recordUses();
  for (let count = 0; count < 1_000; count++) await knock(`2001:db8::${count}`);
  await operators.recordUses();
  expect(await rows()).toMatchObject([{ address: '192.0.2.1', detail: { count: 1 } }]);
  await clock.advance(FOLD_MS);
  await operators.recordUses();
  const [last] = await rows();
  expect(last).toMatchObject({
    actor: '(unknown)',
    source: 'console',
    address: '(several)',
    action: 'operator.login',
    outcome: 'refused',
    detail: {
      count: 1_000,
      since: new Date(clock.now() - FOLD_MS).toISOString(),
      addresses: { length: 20, 0: '2001:db8::0' },
    },
  });
  expect(lines).toHaveLength(1);
});

it('names the operator whose key was revoked, and keeps rows that could not be written', async () => {
  await using test = open();
  const { clock, store, operators, knock, rows, lines } = test;
  const { key, record } = await createOperatorKey({ store, clock, random: systemRandom }, { name: 'ann' });
  expect(await knock('192.0.2.1', key)).toMatchObject({ name: 'ann' });
  await revokeOperatorKey({ store, clock }, record.id);
  expect(await knock('192.0.2.1', key)).toBeNull();
  expect(JSON.stringify(lines)).toContain(record.id);
  expect(JSON.stringify(lines)).not.toContain(key);
  const broken = new Operators({
    store: { read: store.read, transact: () => Promise.reject(new Error('no room')) },
    clock,
    log: { warn: () => undefined },
  });
  await broken.ofKey('wrong', { source: 'api', address: '192.0.2.1' });
  await expect(broken.recordUses()).rejects.toThrow('no room');
  await operators.recordUses();
  expect(await rows()).toMatchObject([{ actor: 'ann', address: '192.0.2.1', outcome: 'refused' }]);
});

it('writes the last ones at the end of a server, also before their time is over [refused-sign-ins-at-end]', async () => {
  await using test = open();
  const { operators, knock, rows } = test;
  await knock('192.0.2.1');
  await operators.recordUses();
  for (let address = 0; address < 1_000; address++) await knock(`2001:db8::${address}`);
  await operators.recordUses({ isLast: true });
  expect((await rows()).map(({ detail }) => detail['count'])).toEqual([1_000, 1]);
});

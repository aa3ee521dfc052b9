import { expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { systemRandom } from '../runtime/system.ts';
import { openMemoryStore } from '../store/sqlite/store.ts';
import { createOperatorKey, Operators, revokeOperatorKey } from './keys.ts';

const MINUTE_MS = 60_000;

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

it('folds the refused keys of an address into one row a minute, with a count [refused-sign-ins-folded]', async () => {
  await using test = open();
  const { clock, operators, knock, rows, lines } = test;
  await knock('192.0.2.1');
  await operators.recordUses();
  for (let count = 0; count < 1_000; count++) await knock('192.0.2.1');
  await knock('192.0.2.2');
  await operators.recordUses();
  expect(await rows()).toMatchObject([
    { address: '192.0.2.2', detail: { count: 1 } },
    { address: '192.0.2.1', detail: { count: 1 } },
  ]);
  await clock.advance(MINUTE_MS);
  await operators.recordUses();
  const [last] = await rows();
  expect(last).toMatchObject({
    actor: '(unknown)',
    source: 'console',
    address: '192.0.2.1',
    action: 'operator.login',
    outcome: 'refused',
    detail: { count: 1_000, since: new Date(clock.now() - MINUTE_MS).toISOString() },
  });
  expect(lines).toHaveLength(2);
});

it('writes few rows however many addresses there are, and counts each refused key in one [refused-sign-ins-bounded]', async () => {
  await using test = open();
  const { clock, operators, knock, rows } = test;
  const MINUTES = 6 * 60;
  for (let minute = 0; minute < MINUTES; minute++) {
    for (let address = 0; address < 20; address++) await knock(`2001:db8::${minute * 20 + address}`);
    await operators.recordUses();
    await clock.advance(MINUTE_MS);
  }
  await clock.advance(24 * 60 * MINUTE_MS);
  await operators.recordUses();
  const written = await rows();
  expect(written.length).toBeLessThan(60 + 60 + 60);
  const counts = written.map(({ detail }) => Number(detail['count']));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(MINUTES * 20);
});

it('names the operator whose key was revoked, and keeps rows that could not be written', async () => {
  await using test = open();
  const { clock, store, operators, knock, rows, lines } = test;
  const { key, record } = await createOperatorKey({ store, clock, random: systemRandom }, 'ann');
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

it('writes the last ones at the end of a server, also before their minute is over and with no row left for attackers [refused-sign-ins-at-end]', async () => {
  await using test = open();
  const { operators, knock, rows, clock } = test;
  for (let round = 0; round < 6; round++) {
    for (let address = 0; address < 20; address++) await knock(`192.0.2.${address}`);
    await operators.recordUses();
    await clock.advance(MINUTE_MS);
  }
  await operators.recordUses();
  const before = (await rows()).length;
  for (let address = 0; address < 1_000; address++) await knock(`2001:db8::${address}`);
  await operators.recordUses({ isLast: true });
  const written = await rows();
  const counts = written.map(({ detail }) => Number(detail['count']));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(6 * 20 + 1_000);
  expect(written.length - before).toBeLessThan(25);
});

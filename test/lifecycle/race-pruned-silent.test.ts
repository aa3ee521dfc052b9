import { afterEach, beforeEach, expect, it } from 'vitest';
import type { MachineSpec } from '../../src/orchestrator/model/platform-driver.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The note of another instance, of an account that the database lost too: its row cannot be restored. */
const lostNote = (note: string, id: string, lost: string): string =>
  note.replaceAll(id, lost).replace(/"accountId":"[^"]*"/, '"accountId":"acct-lost"');

let berth: Awaited<ReturnType<typeof startPlainOrchestrator>>;
/** Of the two hosts n1 and n2: the one that does not answer. */
let silent: string | undefined;
/** Which host really has each machine. */
const holders = new Map<string, string>();
let next = 'n1';
let specs: MachineSpec[] = [];

beforeEach(async () => {
  silent = undefined;
  holders.clear();
  next = 'n1';
  specs = [];
  berth = await startPlainOrchestrator(() => 'none', {
    retention: { tombstones_days: 1 / 24, history_days: 30, audit_days: 365 },
    reconcile: { watchIntervalMs: 60_000 },
  });
  const { driver } = berth.platform;
  const { create, get, list } = driver;
  const hosts = () => {
    const all = ['n1', 'n2'];
    return { answered: all.filter((name) => name !== silent), silent: silent === undefined ? [] : [silent] };
  };
  const hostOf = (ref: string) => holders.get(ref) ?? 'n1';
  driver.create = async (spec, cookie) => {
    specs.push(spec);
    if (!holders.has(spec.ref)) holders.set(spec.ref, next);
    const step = await create.call(driver, spec, cookie);
    return step.outcome === 'done' ? { ...step, value: { ...step.value, host: hostOf(spec.ref) } } : step;
  };
  driver.list = async () => {
    const listing = await list.call(driver);
    if (listing.answer !== 'listed') return listing;
    const items = listing.items.flatMap((item) =>
      hostOf(item.ref) === silent ? [] : [{ ...item, host: hostOf(item.ref) }],
    );
    return { ...listing, items, hosts: hosts() };
  };
  driver.get = async (ref) => {
    const found = await get.call(driver, ref);
    if (found.answer === 'observed' && hostOf(ref) !== silent) return found;
    return silent === undefined
      ? { answer: 'gone', hosts: hosts() }
      : { answer: 'unknown', reason: 'a host does not answer', hosts: hosts() };
  };
});
afterEach(() => berth[Symbol.asyncDispose]());

it('P1: a machine whose row was lost is not destroyed because its host was silent for a while', async () => {
  const { clock, orchestrator, platform } = berth;
  // A machine of ours, with its whole note, whose row was lost: PostgreSQL failed over to a standby that did not have the
  // commit (F20), or a backup without its mark was restored. It was ONLINE, and holds its tenant's data.
  const first = await berth.create();
  await berth.passUntil(`/instances/${first}`, 'ONLINE');
  const like = specs[0];
  if (like === undefined) throw new Error('nothing was made');
  const lost = `inst-${'0123456789abcdef'.repeat(2)}`;
  const ref = `berth-${lost}`;
  const spec = { ...like, ref: ref as never, note: lostNote(like.note, first, lost) };
  for (let step = await platform.driver.create(spec, null); step.outcome === 'pending'; ) {
    await clock.advance(1_000);
    step = await platform.driver.create(spec, step.cookie);
  }
  // Another one is made later, on the other host, and ends: an ordinary tombstone.
  next = 'n2';
  const later = await berth.create();
  await berth.passUntil(`/instances/${later}`, 'ONLINE');
  await orchestrator.request('DELETE', `/instances/${later}`);
  await berth.passUntil(`/instances/${later}`, 'GONE');
  await clock.advance(40 * MINUTE_MS);
  const alarms = (await orchestrator.store.read.alarms.list()).map(({ kind, subject }) => [kind, subject]);
  expect(alarms).toContainEqual(['row_lost', ref]);
  // While it is shown, nothing is pruned, however long: decision 22.
  await clock.advance(3 * HOUR_MS);
  expect(await orchestrator.store.read.instances.byId(later)).not.toBeNull();
  expect(platform.machines.has(ref)).toBe(true);
  // Its host is silent for some listings.
  silent = 'n1';
  await clock.advance(3 * MINUTE_MS);
  silent = undefined;
  await clock.advance(5 * MINUTE_MS);
  expect(platform.machines.has(ref)).toBe(true);
});

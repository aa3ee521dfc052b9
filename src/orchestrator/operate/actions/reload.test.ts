import { afterEach, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { Actor } from '../../../operator-kit/model.ts';
import { Fatal } from '../../../ports/errors.ts';
import { openMemoryStore } from '../../../store/sqlite/store.ts';
import { Alarms } from '../../alarms/alarms.ts';
import { Reloader, requestReload } from './reload.ts';

const actor: Actor = { name: 'ann', source: 'api', address: '192.0.2.7' };
const store = openMemoryStore();
const clock = new VirtualClock();
/** The problems that were logged as errors. */
const logged: string[] = [];
const log = {
  info: () => undefined,
  warn: () => undefined,
  error: (fields: object) => void logged.push((fields as { problem: string }).problem),
};
afterEach(() => store.transact((tx) => tx.audit.pruneOldest(Number.MAX_SAFE_INTEGER, 100)));

function server(name: string) {
  const alarms = new Alarms({ store, clock, log, server: name });
  const state = { loads: 0, problem: undefined as Error | undefined };
  const load = () => {
    state.loads++;
    if (state.problem !== undefined) throw state.problem;
    return { catalog: 'catalog.yaml', added: ['offer new'], removed: [], changed: [], needs_restart: [] };
  };
  return { state, alarms, reloader: new Reloader({ store, clock, log, alarms, load }) };
}

it('asked of one server, it is done by each, once; by one that started later, not at all [reload-everywhere]', async () => {
  const [one, two] = [server('one'), server('two')];
  for (const { reloader } of [one, two]) await reloader.begin();
  expect(await one.reloader.reload(actor)).toMatchObject({ added: ['offer new'] });
  await clock.advance(10_000);
  const late = server('late');
  await late.reloader.begin();
  for (let round = 0; round < 3; round++) for (const { reloader } of [one, two, late]) await reloader.poll();
  expect([one.state.loads, two.state.loads, late.state.loads]).toEqual([1, 1, 0]);
  await requestReload({ store, clock }, { ...actor, source: 'cli' });
  for (const { reloader } of [one, two, late]) await reloader.poll();
  expect([one.state.loads, two.state.loads, late.state.loads]).toEqual([2, 2, 1]);
  const audit = await store.read.audit.page({ limit: 9 });
  expect(audit.map(({ action, source, detail }) => [action, source, detail['added']])).toEqual([
    ['configuration.reload', 'cli', undefined],
    ['configuration.reload', 'api', ['offer new']],
  ]);
});

it('refused by a server is an alarm of it, until it is in order again [reload-refused]', async () => {
  const { reloader, state, alarms } = server('three');
  await reloader.begin();
  state.problem = new Fatal('catalog.yaml:3 offers[0].price_per_hour: expected a number');
  await clock.advance(10_000);
  await requestReload({ store, clock }, actor);
  await reloader.poll();
  expect(alarms.listOpen()).toMatchObject([
    { kind: 'reload_refused', subject: 'three', text: expect.stringContaining('catalog.yaml:3') },
  ]);
  await expect(reloader.reload(actor)).rejects.toThrow('expected a number');
  state.problem = new Fatal('berth.yaml:1: no such key\nCorrect it');
  await expect(reloader.reload(actor)).rejects.toThrow('no such key');
  await alarms.sync();
  const [row] = await store.read.alarms.list();
  expect(row?.text).toMatch(/\(berth\.yaml:1: no such key; Correct it\)$/);
  expect(logged).toEqual([
    expect.stringContaining('catalog.yaml:3'),
    expect.stringContaining('catalog.yaml:3'),
    'berth.yaml:1: no such key; Correct it',
  ]);
  state.problem = new Fatal('catalog.yaml:3 offers[0].price_per_hour: expected a number');
  await expect(reloader.reload(actor)).rejects.toThrow('expected a number');
  const [refused] = await store.read.audit.page({ limit: 1 });
  expect(refused).toMatchObject({ outcome: 'refused', detail: { reason: expect.stringContaining(':3') } });
  state.problem = undefined;
  await reloader.reload(actor);
  await alarms.sync();
  expect(alarms.listOpen()).toEqual([]);
});

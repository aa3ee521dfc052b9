import { expect, it } from 'vitest';
import type { Step } from '../../src/orchestrator/model/platform-driver.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

type Answer = (cookie: string | null) => Step<never>;
const refused = { outcome: 'failed', code: 'conflict', sideEffect: 'none', detail: 'protected' } as const;
const accepted = { outcome: 'pending', cookie: 'sent', pollAfterMs: 300 } as const;
const unfinished = { outcome: 'failed', code: 'unfinished', sideEffect: 'certain', detail: 'half' } as const;

/**
 * Orders work of each kind from a platform that gives each of its calls the same `answer`. `calls`: their number by
 * ref. `repair`: from then on the platform does its work.
 */
async function orderEverything(berth: Awaited<ReturnType<typeof startPlainOrchestrator>>, answer: Answer) {
  const { driver } = berth.platform;
  const volumes = driver.volumes ?? expect.unreachable();
  const works = { driver: { ...driver }, volumes: { ...volumes } };
  const create = () => berth.create();
  const [holder, destroyed, stopped] = [await create(), await create(), await create()];
  const [attached = '', detached = '', removed = ''] = await Promise.all(
    [0, 1, 2].map(() => berth.createVolume()),
  );
  await berth.passUntil(`/instances/${stopped}`, 'ONLINE');
  await berth.post(`/volumes/${detached}/attach`, { instance_ids: [holder] });
  await berth.passUntil(`/volumes/${detached}`, 'ATTACHED');
  const calls = new Map<string, number>();
  const refuse = async (...[of, ...args]: unknown[]): Promise<Step<never>> => {
    const ref = typeof of === 'string' ? of : (of as { ref: string }).ref;
    calls.set(ref, (calls.get(ref) ?? 0) + 1);
    return answer(args.includes(accepted.cookie) ? accepted.cookie : null);
  };
  Object.assign(driver, { create: async () => unfinished, destroy: refuse, stop: refuse });
  Object.assign(volumes, { create: refuse, attach: refuse, detach: refuse, destroy: refuse });
  // Its first attempt has to be removed.
  const again = await create();
  await berth.clock.advance(100);
  driver.create = works.driver.create;
  await berth.passUntil(`/instances/${again}`, 'ONLINE');
  const created = await berth.createVolume();
  await berth.orchestrator.request('DELETE', `/instances/${destroyed}`);
  await berth.orchestrator.request('DELETE', `/volumes/${removed}`);
  await berth.post(`/instances/${stopped}/stop`);
  await berth.post(`/volumes/${attached}/attach`, { instance_ids: [holder] });
  await berth.post(`/volumes/${detached}/detach`);
  const repair = () => void [Object.assign(driver, works.driver), Object.assign(volumes, works.volumes)];
  return {
    subjects: [destroyed, stopped, created, attached, detached, removed, `berth-${again}`],
    destroyed,
    calls,
    repair,
  };
}

it.each<[string, Answer, number, number]>([
  [
    'accepts, and refuses 5 s later',
    (cookie) => (cookie === null ? { ...accepted, pollAfterMs: 5_000 } : refused),
    120,
    250,
  ],
  ['accepts and never finishes', () => accepted, 610, 1_500],
])(
  'each kind of work that a platform %s goes on ever more slowly, with an alarm and a folded history [destroy-refused]',
  async (_answer, answer, alarmWithinS, mostCalls) => {
    await using berth = await startPlainOrchestrator(undefined, { reconcile: { watchIntervalMs: 300_000 } });
    const { subjects, destroyed, calls, repair } = await orderEverything(berth, answer);
    const { read } = berth.orchestrator.store;
    const alarms = async () => (await read.alarms.list()).map(({ kind, subject }) => `${kind} ${subject}`);
    await berth.clock.advance(alarmWithinS * 1_000);
    expect((await alarms()).sort()).toEqual(subjects.map((subject) => `step_failing ${subject}`).sort());
    await berth.clock.advance(60 * 60_000);
    expect(Math.max(...calls.values())).toBeLessThan(mostCalls);
    expect(calls.size).toBe(subjects.length);
    expect((await read.history.of(destroyed)).filter(({ next }) => next === 'again').length).toBeLessThan(3);
    expect([
      (await berth.read(`/instances/${destroyed}`))['status'],
      await read.claims.isHeldBy(destroyed),
    ]).toEqual(['DESTROYING', true]);
    repair();
    await berth.passUntil(`/instances/${destroyed}`, 'GONE');
    await berth.clock.advance(60_000);
    expect(await alarms()).toEqual([]);
  },
);

it('a volume that its platform never completes is made under new names ever more slowly, with an alarm [unfinished-for-ever]', async () => {
  await using berth = await startPlainOrchestrator(undefined, { reconcile: { watchIntervalMs: 300_000 } });
  let made = 0;
  Object.assign(berth.platform.driver.volumes ?? {}, {
    create: async () => {
      made++;
      return unfinished;
    },
  });
  const id = await berth.createVolume();
  await berth.clock.advance(120_000);
  expect(await berth.orchestrator.store.read.alarms.list()).toMatchObject([
    { kind: 'step_failing', subject: id },
  ]);
  expect(made).toBeLessThan(15);
});

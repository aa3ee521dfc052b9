import { expect, it } from 'vitest';
import type { Entry } from '../../resources/ledger.ts';
import { thisProcess } from '../../resources/process-identity.ts';
import type { ProbeSummary } from '../records.ts';
import { LEASE_MS, LeaseLost } from './lease.ts';
import { openState, type State } from './state.ts';

const ELSEWHERE = { pid: 1, host: 'another-host.test' };
const NOW = Date.UTC(2026, 0, 1);

const entry: Entry = {
  n: 1,
  type: 'instance',
  name: 'bm-00000000-1',
  step: 'create/post',
  state: 'intended',
  region: 'eu-north',
  pricePerHour: 0.02,
  intendedAt: NOW,
};

const summary: ProbeSummary = {
  end: 'completed',
  passed: ['CFG-LIST-001'],
  failed: [],
  warned: [],
  notTested: [],
  latenciesMs: [12.5],
  answered: { good: 1, of: 1 },
  reached: { good: 0, of: 0 },
  stocked: { good: 0, of: 0 },
  priced: { good: 0, of: 0 },
  clean: { good: 0, of: 0 },
  costUsd: 0,
  left: 0,
};

/** What both databases must do. `withState` gives a name for `openState` whose database is empty. */
export function testState(withState: () => Promise<string>): void {
  async function opened(count: number): Promise<State[]> {
    const name = await withState();
    const states: State[] = [];
    for (let index = 0; index < count; index++) states.push(await openState(name));
    return states;
  }

  async function one(work: (state: State) => Promise<void>): Promise<void> {
    const [state] = await opened(1);
    if (state === undefined) throw new Error('one was opened');
    await state.lease.take(thisProcess(), NOW);
    await work(state);
    await state.close();
  }

  it('keeps what is written, and its seed', () =>
    one(async (state) => {
      expect(await state.seed()).toBe(await state.seed());
      expect(await state.moment('a', 'read')).toBeUndefined();
      const moment = { drawn: 1, drawnAt: NOW, dueAt: NOW + 5 };
      await state.setMoment('a', 'read', moment);
      await state.setMoment('a', 'read', { ...moment, drawn: 2 });
      expect(await state.moment('a', 'read')).toEqual({ ...moment, drawn: 2 });
      const probe = { runId: 'r1', provider: 'a', kind: 'read', startedAt: NOW, summary } as const;
      await state.addProbe(probe);
      await state.addProbe({ ...probe, runId: 'r0', startedAt: NOW - 10 });
      expect(await state.probesSince('a', NOW)).toEqual([probe]);
      expect(await state.probesSince('b', 0)).toEqual([]);
      await state.addTranscript('a', 'digest', NOW, '{}\n');
      expect(await state.transcript('digest')).toBe('{}\n');
      await state.addMarker('a', 'r1', 'marker', NOW);
      expect(await state.markers('a')).toEqual(new Map([['marker', 'r1']]));
      await state.setStatus('a', 'certified');
      expect(await state.status('a')).toBe('certified');
    }));

  it('knows the runs whose resources may exist, with the last state of each entry', () =>
    one(async (state) => {
      const plain = { seed: 's', installation: '00000000' };
      const run = {
        line: 'run',
        runId: 'r1',
        baseUrl: 'https://a.test/v1',
        startedAt: '2026',
        plain,
      } as const;
      await state.append('a', 'r1', run);
      await state.append('a', 'r1', { line: 'entry', entry });
      await state.append('a', 'r1', { line: 'entry', entry: { ...entry, n: 2, state: 'refused' } });
      const [open] = await state.openRuns('a');
      expect(open).toMatchObject({ runId: 'r1', baseUrl: run.baseUrl, plain });
      expect(open?.entries.map(({ state: of }) => of)).toEqual(['intended', 'refused']);
      const gone: Entry = { ...entry, state: 'gone', id: 'i-1', goneAt: NOW + 10 };
      await state.append('a', 'r1', { line: 'entry', entry: gone });
      expect(await state.openRuns('a')).toEqual([]);
      expect(await state.goneInstances('a')).toEqual(new Map([['i-1', { runId: 'r1', entry: gone }]]));
      expect(await state.entriesSince('a', NOW + 10)).toEqual([gone]);
      expect(await state.entriesSince('a', NOW + 11)).toEqual([]);
    }));

  it('sends an alert once', () =>
    one(async (state) => {
      const alert = {
        id: 'x',
        at: new Date(NOW).toISOString(),
        provider: 'a',
        kind: 'status',
        text: 't',
      } as const;
      await state.addAlert(alert);
      await state.addAlert({ ...alert, text: 'again' });
      expect(await state.unsentAlerts()).toEqual([alert]);
      await state.markSent('x');
      expect(await state.unsentAlerts()).toEqual([]);
    }));

  it('forgets old probes, transcripts and sent alerts, and no resource', () =>
    one(async (state) => {
      await state.addProbe({ runId: 'r1', provider: 'a', kind: 'read', startedAt: NOW, summary });
      await state.addTranscript('a', 'digest', NOW, 'text');
      await state.append('a', 'r1', { line: 'run', runId: 'r1', baseUrl: 'b', startedAt: '2026' });
      await state.append('a', 'r1', { line: 'entry', entry });
      await state.prune(NOW + 1);
      expect(await state.probesSince('a', 0)).toEqual([]);
      expect(await state.transcript('digest')).toBeUndefined();
      expect(await state.openRuns('a')).toHaveLength(1);
    }));

  it('lets one monitor write at a time; one whose lease was taken over writes nothing more', async () => {
    const [first, second] = await opened(2);
    if (first === undefined || second === undefined) throw new Error('two were opened');
    expect(await first.lease.take(ELSEWHERE, NOW)).toBeUndefined();
    expect(await second.lease.take(thisProcess(), NOW + LEASE_MS)).toBe('process 1 on another-host.test');
    await expect(second.setStatus('a', 'certified')).rejects.toThrow(LeaseLost);
    expect(await first.lease.renew(NOW + LEASE_MS)).toBe(true);
    expect(await second.lease.take(thisProcess(), NOW + 2 * LEASE_MS + 1)).toBeUndefined();
    expect(await first.lease.renew(NOW + 2 * LEASE_MS + 1)).toBe(false);
    await expect(first.append('a', 'r1', { line: 'entry', entry })).rejects.toThrow(LeaseLost);
    expect(await first.entriesSince('a', 0)).toEqual([]);
    await first.lease.release();
    expect(await second.lease.renew(NOW + 2 * LEASE_MS + 1)).toBe(true);
    for (const state of [first, second]) await state.close();
  });

  it('takes over at once from a process of this host that has ended, and after the clock was set back', async () => {
    const [first, second, third] = await opened(3);
    if (first === undefined || second === undefined || third === undefined)
      throw new Error('three were opened');
    await first.lease.take({ ...thisProcess(), startedAt: 'another boot' }, NOW);
    expect(await second.lease.take(ELSEWHERE, NOW)).toBeUndefined();
    expect(await third.lease.take(thisProcess(), NOW - 86_400_000)).toBeUndefined();
    expect(await second.lease.renew(NOW)).toBe(false);
    for (const state of [first, second, third]) await state.close();
  });
}

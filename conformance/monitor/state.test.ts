import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Entry, Ledger } from '../resources/ledger.ts';
import { openLedgerFile } from '../resources/ledger-file.ts';
import { probeAt } from './probe.fixture.ts';
import { openState, type State } from './state.ts';

const NOW = Date.UTC(2026, 0, 1);

describe('the state of the monitor', () => {
  let root = '';
  let count = 0;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'berth-monitor-state-'));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  async function one(work: (state: State) => void | Promise<void>): Promise<void> {
    const state = await openState(join(root, `${++count}`));
    await work(state);
    state.close();
  }

  it('keeps what is written, and its seed', () =>
    one((state) => {
      expect(state.seed()).toBe(state.seed());
      expect(state.moment('a', 'read')).toBeUndefined();
      const moment = { drawn: 1, drawnAt: NOW, dueAt: NOW + 5 };
      state.setMoment('a', 'read', moment);
      state.setMoment('a', 'read', { ...moment, drawn: 2 });
      expect(state.moment('a', 'read')).toEqual({ ...moment, drawn: 2 });
      state.addProbe(probeAt(NOW));
      state.addProbe(probeAt(NOW - 10));
      expect(state.probesSince('a', NOW)).toEqual([probeAt(NOW)]);
      expect(state.probesSince('b', 0)).toEqual([]);
      state.addTranscript('a', 'digest', NOW, '{}\n');
      expect(state.transcript('digest')).toBe('{}\n');
      expect(state.countTranscripts('a', NOW)).toBe(1);
      state.addMarker('a', 'r1', 'marker');
      expect(state.markers('a')).toEqual(new Map([['marker', 'r1']]));
      state.setStatus('a', 'certified');
      expect(state.status('a')).toBe('certified');
    }));

  it('knows the resources that may exist, and those that are gone, from the ledgers of a provider', () =>
    one((state) => {
      const file = openLedgerFile(state.ledgersOf('a'), 'r123');
      file.append({ line: 'run', runId: 'r123', baseUrl: 'https://a.test/v1', startedAt: '2026' });
      const ledger = new Ledger({ file, runId: 'r123', wall: () => NOW });
      const [first, second] = [1, 2].map(() => ledger.intend({ type: 'instance', step: 'create/post' }));
      expect(state.readLedgers('a').open).toHaveLength(1);
      expect(state.readLedgers('b').open).toEqual([]);
      ledger.refused(second as Entry);
      ledger.made(first as Entry, 'i-1');
      expect(state.entriesSince('a', NOW + 1)).toMatchObject([{ id: 'i-1' }]);
      expect([...state.goneInstances('a')]).toEqual([]);
      ledger.gone(first as Entry);
      file.close();
      expect(state.readLedgers('a').open).toEqual([]);
      expect(state.goneInstances('a').get('i-1')).toMatchObject({ entry: { id: 'i-1', goneAt: NOW } });
      expect(state.entriesSince('a', NOW)).toHaveLength(2);
      expect(state.entriesSince('a', NOW + 1)).toEqual([]);
    }));

  it('sends an alert once', () =>
    one((state) => {
      const at = new Date(NOW).toISOString();
      const alert = { id: 'x', at, provider: 'a', kind: 'status', text: 't' } as const;
      state.addAlert(alert);
      state.addAlert({ ...alert, text: 'again' });
      expect(state.unsentAlerts()).toEqual([alert]);
      state.markSent('x');
      expect(state.unsentAlerts()).toEqual([]);
    }));

  it('forgets old probes, transcripts and sent alerts', () =>
    one((state) => {
      state.addProbe(probeAt(NOW));
      state.addTranscript('a', 'digest', NOW, 'text');
      state.prune(NOW + 1);
      expect(state.probesSince('a', 0)).toEqual([]);
      expect(state.transcript('digest')).toBeUndefined();
    }));

  it('is refused if it is not a folder, with what to do', async () => {
    const path = join(root, 'text');
    writeFileSync(path, 'this is a file');
    await expect(openState(path)).rejects.toThrow(/cannot be opened .*: name a folder/);
  });
});
